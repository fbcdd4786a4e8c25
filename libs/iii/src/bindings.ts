import { HarnessError, type Schema } from '#libs/contracts';
import type { Bus, Registration, TriggerRegistration, TriggerTypeDefinition, TriggerTypeHandler } from './bus.js';
import { violation } from './validation.js';

/** One function bound to a trigger type. */
export interface Binding<TConfig> {
  readonly registration: TriggerRegistration;
  readonly config: TConfig;
}

/**
 * The bindings of one trigger type. They are a set: the same function bound twice with the same configuration is one
 * binding, and it goes when the last of its registrations goes.
 */
export class TriggerBindings<TConfig> implements TriggerTypeHandler {
  private readonly byId = new Map<string, Binding<TConfig>>();

  constructor(
    private readonly definition: TriggerTypeDefinition,
    /** Called after each change, e.g. to drop something derived. */
    private readonly changed: () => void = () => undefined,
  ) {}

  /** Publishes the trigger type on `bus`. */
  publish(bus: Bus): Registration {
    return bus.registerTriggerType(this.definition, this);
  }

  registerTrigger(trigger: TriggerRegistration): void {
    const config = trigger.config ?? {};
    const wrong = violation(this.definition.trigger_request_format ?? (true satisfies Schema), config);
    if (wrong !== null)
      throw new HarnessError(
        `${this.definition.id.split('::')[0] ?? 'harness'}/invalid_request`,
        `config of ${this.definition.id}: ${wrong}`,
      );
    this.byId.set(trigger.id, { registration: trigger, config: config as TConfig });
    this.changed();
  }

  unregisterTrigger(trigger: TriggerRegistration): void {
    if (this.byId.delete(trigger.id)) this.changed();
  }

  get empty(): boolean {
    return this.byId.size === 0;
  }

  /** Each distinct binding once, in order of registration. */
  list(): Binding<TConfig>[] {
    const distinct = new Map<string, Binding<TConfig>>();
    for (const binding of this.byId.values()) {
      const key = JSON.stringify([binding.registration.function_id, binding.config]);
      if (!distinct.has(key)) distinct.set(key, binding);
    }
    return [...distinct.values()];
  }

  /** Calls the bound functions whose configuration matches; rejects when one of them failed, after all were called. */
  async call(bus: Bus, payload: unknown, matches: (config: TConfig) => boolean): Promise<void> {
    const calls = this.list()
      .filter(({ config }) => matches(config))
      .map(({ registration: { function_id, metadata } }) =>
        bus.trigger({ function_id, payload, ...(metadata === undefined ? {} : { metadata }) }),
      );
    const failed = (await Promise.allSettled(calls)).find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
