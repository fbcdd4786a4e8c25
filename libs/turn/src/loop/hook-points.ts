import type { AssistantMessage, HookInput, HookPoint, JsonObject, JsonValue } from '#libs/contracts';
import { type ChainOutcome, runChain } from '#libs/hooks';
import type { PlannedCall } from '../machine/calls.js';
import type { CallResult, Screening, TurnFailure } from '../machine/decision.js';
import { resultWithheld } from '../machine/results.js';
import type { Generation } from '../model/generate.js';
import { cleanContent } from '../model/text.js';
import type { TurnRecord } from '../record/record.js';
import type { RunTrace } from '../tracing/run-trace.js';
import type { LoopPorts } from './ports.js';

/** Where the loop consults hooks. Every point costs nothing while no function is bound to it. */
export class HookPoints {
  constructor(
    private readonly ports: LoopPorts,
    private readonly signal: AbortSignal,
    private readonly trace: RunTrace,
  ) {}

  /** True when a pre-trigger hook has a say in a call of the session. */
  isHooked(sessionId: string, functionId: string): boolean {
    return this.ports.hooks.chain('pre_trigger', { session_id: sessionId, function_id: functionId }).length > 0;
  }

  /** Before the first model call of a turn; a denial is why it fails. */
  async preTurn(record: TurnRecord): Promise<TurnFailure | null> {
    const outcome = await this.run('pre_turn', undefined, { ...base('pre_turn', record) });
    return outcome?.kind === 'deny' ? denied('harness.pre_turn_denied', outcome) : null;
  }

  /** Before a model call: hooks may change the system prompt, append messages, or deny. */
  async preGenerate(
    record: TurnRecord,
    generation: Generation,
  ): Promise<{ generation: Generation; annotations: JsonObject | null } | TurnFailure> {
    const { model, provider } = record.options;
    const { system_prompt, messages } = generation;
    const outcome = await this.run('pre_generate', undefined, {
      ...base('pre_generate', record),
      generate: { system_prompt, messages, model, provider },
    });
    if (outcome === null || outcome.kind === 'stopped') return { generation, annotations: null };
    if (outcome.kind === 'deny') return denied('harness.pre_generate_denied', outcome);
    const generate = outcome.input.generate;
    if (generate === undefined) return { generation, annotations: outcome.annotations };
    const appended = generate.messages.slice(messages.length).map((message) => ({ ...message, content: cleanContent(message.content) }));
    const substantial = appended.filter((message) => message.role === 'user' && message.content.length > 0);
    return {
      generation: { ...generation, system_prompt: generate.system_prompt, messages: [...messages, ...substantial] },
      annotations: outcome.annotations,
    };
  }

  /** After a model call: hooks observe, and may annotate. */
  async postGenerate(record: TurnRecord, message: AssistantMessage): Promise<JsonObject | null> {
    const outcome = await this.run('post_generate', undefined, { ...base('post_generate', record), generated: { message } });
    return outcome?.kind === 'continue' ? outcome.annotations : null;
  }

  /** Before a call, after the policy: hooks may rewrite its arguments, deny or hold it. `after` names the hook that released it. */
  async preTrigger(record: TurnRecord, call: PlannedCall, after: string | null): Promise<Screening> {
    const { id, function_id, arguments: args } = call;
    const outcome = await this.run(
      'pre_trigger',
      function_id,
      { ...base('pre_trigger', record), call: { id, function_id, arguments: args } },
      after,
    );
    if (outcome === null || outcome.kind === 'stopped') return { kind: 'run' };
    const annotations = outcome.annotations === null ? {} : { annotations: outcome.annotations };
    if (outcome.kind === 'deny') return { kind: 'deny', by: outcome.by, reason: outcome.reason, ...annotations };
    const changed: JsonValue = outcome.input.call === undefined ? args : outcome.input.call.arguments;
    if (outcome.kind === 'hold') {
      const timeout = outcome.pending_timeout_ms ?? this.ports.settings.current().default_pending_timeout_ms;
      return { kind: 'hold', by: outcome.by, arguments: changed, expires_at: this.ports.clock.now() + timeout, ...annotations };
    }
    return { kind: 'run', ...(changed === args ? {} : { arguments: changed }), ...annotations };
  }

  /**
   * After a call: hooks may rewrite its result before it is stored. One that is closed and fails keeps the result back. Null
   * when the turn was stopped before all of them had seen it: then nobody may.
   */
  async postTrigger(
    record: TurnRecord,
    call: PlannedCall,
    result: CallResult,
  ): Promise<{ result: CallResult; annotations: JsonObject | null } | null> {
    const input: HookInput = {
      ...base('post_trigger', record),
      result: { function_call_id: call.id, function_id: call.function_id, ...result },
    };
    const outcome = await this.run('post_trigger', call.function_id, input);
    if (outcome?.kind === 'stopped') return null;
    if (outcome?.kind === 'deny')
      return { result: resultWithheld(call.function_id, outcome.by, outcome.reason), annotations: outcome.annotations };
    if (outcome?.kind !== 'continue' || outcome.input.result === undefined) return { result, annotations: null };
    const { content, details, is_error } = outcome.input.result;
    const cleaned = cleanContent(content);
    return {
      result: { content: cleaned.length > 0 ? cleaned : [{ type: 'text', text: '(no output)' }], details, is_error },
      annotations: outcome.annotations,
    };
  }

  private async run(
    point: HookPoint,
    functionId: string | undefined,
    input: HookInput,
    after: string | null = null,
  ): Promise<ChainOutcome | null> {
    const call = functionId === undefined ? undefined : { session_id: input.session_id, function_id: functionId };
    const chain = this.ports.hooks.chain(point, call, after);
    return chain.length === 0 ? null : await runChain(this.trace.forHooks(point), chain, input, this.signal);
  }
}

const base = (point: HookPoint, record: TurnRecord): HookInput => ({
  point,
  session_id: record.session_id,
  turn_id: record.turn_id,
  step: record.step,
  depth: record.depth,
  ...(record.options.metadata === null ? {} : { metadata: record.options.metadata }),
});

const denied = (code: string, { by, reason }: { by: string; reason: string }): TurnFailure => ({
  code,
  message: `${by}: ${reason}`,
  retryable: false,
});
