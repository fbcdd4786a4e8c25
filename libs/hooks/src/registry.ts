import { Inject, Injectable } from '@nestjs/common';
import {
  HarnessError,
  HOOK_POINTS,
  type HookPoint,
  type HookTriggerConfig,
  harnessTriggerTypes,
  hookTriggerType,
  type JsonValue,
} from '#libs/contracts';
import { BUS, type Bus, TriggerBindings, type TriggerRegistration } from '#libs/iii';
import { type HookBinding, isGuard } from './binding.js';

/** Default of a hook's `timeout_ms`. */
const TIMEOUT_MS = 5_000;

/** Makes matchers of globs; throws `harness/invalid_request` for one that is not valid. */
export type CompileGlobs = (globs: readonly string[], field: string) => (functionId: string) => boolean;
/** Injection token of `CompileGlobs`. */
export const COMPILE_GLOBS = Symbol('hooks:compile-globs');

/** A call that hooks are chosen for. */
export interface HookedCall {
  session_id: string;
  function_id: string;
}

/** The five hook points as trigger types, and the chain of each. The bus tells of bindings that come and go. */
@Injectable()
export class HookRegistry {
  private readonly points = new Map<HookPoint, HookPointBindings>();
  private readonly exemptions = new Map<string, (call: HookedCall) => boolean>();

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(COMPILE_GLOBS) compile: CompileGlobs,
  ) {
    for (const point of HOOK_POINTS) this.points.set(point, new HookPointBindings(point, compile));
  }

  /** Makes the trigger types known on the bus. */
  publish(): void {
    for (const bindings of this.points.values()) bindings.publish(this.bus);
  }

  /**
   * Lets a hook function of this process say beforehand, at no cost, that it would let a call pass: then it is not asked, and
   * the call needs no checkpoint for it. `passes` must be quick; when it throws, the hook is asked.
   */
  exempt(functionId: string, passes: (call: HookedCall) => boolean): void {
    this.exemptions.set(functionId, passes);
  }

  /**
   * The hooks of a point in order: priority, then function id; for a call, those that have a say in it, and when the hook
   * `after` has released it, those that come after that one. Each function once.
   */
  chain(point: HookPoint, call?: HookedCall, after: string | null = null): readonly HookBinding[] {
    const ordered = this.points.get(point)?.ordered() ?? [];
    if (call === undefined || ordered.length === 0) return ordered;
    const from = after === null ? 0 : ordered.findIndex((hook) => hook.function_id === after) + 1;
    return ordered.slice(from).filter((hook) => (hook.matches === null || hook.matches(call.function_id)) && !this.isExempt(hook, call));
  }

  private isExempt(hook: HookBinding, call: HookedCall): boolean {
    try {
      return this.exemptions.get(hook.function_id)?.(call) === true;
    } catch {
      return false; // the hook is asked, and fails closed by itself
    }
  }
}

class HookPointBindings extends TriggerBindings<HookTriggerConfig> {
  private cached: readonly HookBinding[] | undefined;

  constructor(
    private readonly point: HookPoint,
    private readonly compile: CompileGlobs,
  ) {
    const id = hookTriggerType(point);
    const { description, config } = harnessTriggerTypes[id as keyof typeof harnessTriggerTypes];
    super({ id, description, trigger_request_format: config }, () => {
      this.cached = undefined;
    });
  }

  override registerTrigger(trigger: TriggerRegistration): void {
    super.registerTrigger(trigger);
    try {
      this.bindingOf(trigger.function_id, (trigger.config ?? {}) as HookTriggerConfig, trigger.metadata);
    } catch (error) {
      this.unregisterTrigger(trigger);
      throw error;
    }
  }

  /** A hook that denies when it fails does so while its worker is away, too. */
  isGuard({ config }: TriggerRegistration): boolean {
    return this.policyOf((config ?? {}) as HookTriggerConfig) === 'fail_closed';
  }

  ordered(): readonly HookBinding[] {
    if (this.cached !== undefined) return this.cached;
    const latest = new Map<string, HookBinding[]>();
    for (const { registration, config } of this.list()) {
      const binding = this.bindingOf(registration.function_id, config, registration.metadata);
      latest.set(registration.function_id, [...(latest.get(registration.function_id) ?? []), binding]);
    }
    this.cached = [...latest.values()].map(merge).sort((a, b) => a.priority - b.priority || (a.function_id < b.function_id ? -1 : 1));
    return this.cached;
  }

  private policyOf({ on_error }: HookTriggerConfig): string {
    return on_error ?? (isGuard(this.point) ? 'fail_closed' : 'fail_open');
  }

  private bindingOf(function_id: string, config: HookTriggerConfig, metadata: JsonValue | undefined): HookBinding {
    const on_error = this.policyOf(config);
    if (on_error !== 'fail_open' && on_error !== 'fail_closed') {
      throw new HarnessError('harness/invalid_request', `on_error must be "fail_open" or "fail_closed", not ${JSON.stringify(on_error)}`);
    }
    const globs = config.functions ?? null;
    if (globs !== null && !this.point.endsWith('_trigger')) {
      throw new HarnessError(
        'harness/invalid_request',
        `functions is for pre-trigger and post-trigger only, not for ${hookTriggerType(this.point)}`,
      );
    }
    return {
      function_id,
      on_error,
      metadata,
      priority: config.priority ?? 0,
      timeout_ms: config.timeout_ms ?? TIMEOUT_MS,
      matches: globs === null ? null : this.compile(globs, 'functions'),
    };
  }
}

/** Bindings of one function to one point are one hook: it runs once, for what any of them matches, at the earliest place. */
function merge(bindings: readonly HookBinding[]): HookBinding {
  const [first, ...rest] = [...bindings].sort((a, b) => a.priority - b.priority);
  if (first === undefined) throw new Error('a hook needs a binding');
  if (rest.length === 0) return first;
  const all = [first, ...rest];
  const matchers = all.map((binding) => binding.matches);
  return {
    ...first,
    timeout_ms: Math.max(...all.map((binding) => binding.timeout_ms)),
    on_error: all.some((binding) => binding.on_error === 'fail_closed') ? 'fail_closed' : 'fail_open',
    matches: matchers.includes(null) ? null : (id) => matchers.some((matches) => matches?.(id) === true),
  };
}
