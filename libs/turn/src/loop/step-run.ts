import { entryIds, textOf, type AssistantMessage, type OutputContract, type ResponseFormat, type TurnStepPayload, type TurnStepResult } from '#libs/contracts';
import { buildSystemPrompt } from '#libs/prompts';
import { dispatch } from '../dispatch/dispatch.js';
import { failpoint } from '../failpoint.js';
import { addressCalls, planCalls, type PlannedCall } from '../machine/calls.js';
import type { Decision, Limits, TurnInput } from '../machine/decision.js';
import { decide } from '../machine/machine.js';
import { generate, type GenerationOutcome } from '../model/generate.js';
import { toolsFor } from '../model/tools.js';
import { userAfter, wireMessages } from '../model/wire-order.js';
import { deliverableOf } from '../output/deliverable.js';
import { compilePolicy, type DispatchPolicy } from '../policy/policy.js';
import type { TurnRecord } from '../record/record.js';
import { StepFeed } from './step-feed.js';
import type { LoopPorts } from './ports.js';

/** How often a step begins again on a changed record before it gives up and is queued again. */
const MAX_REDECIDE = 50;

/**
 * Runs one step: asks the machine what to do, commits its writes, does it, and tells the machine what came of it, until
 * the machine rests. Every outside effect comes after the commit that announces it.
 */
export class StepRun {
  private readonly feed: StepFeed;
  private record: TurnRecord;
  private readonly policy: DispatchPolicy;
  private plan: readonly PlannedCall[] = [];
  private waiting = false;

  constructor(
    private readonly ports: LoopPorts,
    record: TurnRecord,
    private readonly payload: TurnStepPayload,
    private readonly signal: AbortSignal,
  ) {
    this.record = record;
    this.feed = new StepFeed(ports.feed, record);
    this.policy = compilePolicy(record.options.functions, ports.settings.current().lift_never);
  }

  async perform(): Promise<TurnStepResult> {
    let input: TurnInput = await this.begin();
    for (let redecided = 0; redecided < MAX_REDECIDE; ) {
      const decision = decide(this.record, input);
      if (!(await this.commit(decision, input))) {
        const again = await this.afterConflict(input);
        if (again === null) return this.answer('skipped');
        input = again;
        redecided += 1;
        continue;
      }
      this.record = decision.record;
      this.feed.decided(decision, input);
      switch (decision.next.do) {
        case 'rest':
          return this.answer(decision.next.outcome);
        case 'generate':
          input = await this.generate();
          break;
        case 'invoke':
          input = await this.invoke(decision.next.call);
          break;
        default: {
          const unknown: never = decision.next;
          throw new Error(`unknown next ${JSON.stringify(unknown)}`);
        }
      }
    }
    throw new Error(`the record of ${this.record.session_id} changed too often during one step`);
  }

  private answer(outcome: 'skipped' | 'queued' | 'parked' | 'ended'): TurnStepResult {
    const { session_id, status, step } = this.record;
    return { session_id, status, ...(outcome === 'queued' ? { next_step: step } : {}), ...(outcome === 'skipped' ? { skipped: true } : {}) };
  }

  private async commit(decision: Decision, input: TurnInput): Promise<boolean> {
    if (decision.writes.length === 0) return true;
    return (await this.ports.journal.commit(decision.writes, pointOf(decision, input))) === 'committed';
  }

  private async begin(): Promise<TurnInput> {
    const { journal, transcript, clock } = this.ports;
    const { session_id, turn_id, step } = this.payload;
    const parked = await journal.parked(session_id);
    const assistant = entryIds.assistant(turn_id, step);
    const stored = this.record.turn_id === turn_id && this.record.failures + this.record.claims + this.record.calls.length > 0 ? await transcript.entry(session_id, assistant) : null;
    if (stored?.kind === 'message' && stored.message.role === 'assistant' && this.record.phase === 'calls') this.plan = this.planOf(stored.message);
    return { type: 'begin', now: clock.now(), turn_id, step, parked, plan: this.plan, sketched: stored !== null };
  }

  private planOf(message: AssistantMessage): PlannedCall[] {
    return planCalls(message, (id) => this.policy.refusal(id));
  }

  /** The record changed under the step: what to tell the machine now, or null when the step belongs to somebody else. */
  private async afterConflict(input: TurnInput): Promise<TurnInput | null> {
    const { journal, clock } = this.ports;
    const { session_id, turn_id, step } = this.payload;
    const fresh = await journal.load(session_id);
    const mine = fresh !== null && fresh.turn_id === turn_id && fresh.step === step && fresh.status === 'running' && fresh.claims === this.record.claims;
    if (!mine) return null;
    this.record = fresh;
    this.waiting = (await journal.parked(session_id)).length > 0;
    if (fresh.abort_requested) return stoppedBy(input, clock.now());
    if (input.type === 'begin') return this.begin();
    return 'waiting' in input ? { ...input, waiting: this.waiting } : input;
  }

  private async generate(): Promise<TurnInput> {
    const { bus, journal, transcript, settings, clock } = this.ports;
    const { session_id, turn_id, step, options } = this.record;
    const entryId = entryIds.assistant(turn_id, step);
    const window = await transcript.window(session_id);
    const { messages, callIds } = wireMessages(window, entryId);
    const watermark = window.at(-1)?.id ?? null;
    const last = messages.at(-1);
    if (last === undefined || last.role === 'assistant') return { type: 'nothing-to-reply', now: clock.now(), waiting: this.waiting };
    const { router_timeout_ms, stream_coalesce_ms } = settings.current();
    this.feed.stepStarted(step);
    const outcome = await generate(
      bus,
      this.record,
      { system_prompt: this.systemPrompt(), messages, tools: await toolsFor(bus, options.functions, this.policy), ...responseFormat(options.output) },
      {
        delta: (kind, delta) => this.feed.delta(step, kind, delta),
        sketch: (partial) => this.sketch(entryId, partial),
      },
      { timeoutMs: router_timeout_ms, coalesceMs: stream_coalesce_ms, signal: this.signal, now: () => clock.now() },
    );
    failpoint('generation:after');
    const now = clock.now();
    switch (outcome.kind) {
      case 'message': {
        const message = addressCalls(outcome.message, turn_id, step, (id) => callIds.has(id));
        this.plan = this.planOf(message);
        this.feed.message(step, message);
        this.waiting = userAfter(await transcript.window(session_id), watermark) || (await journal.parked(session_id)).length > 0;
        return { type: 'generated', now, message, plan: this.plan, waiting: this.waiting, deliverable: deliverableOf(options.output, textOf(message.content)) };
      }
      case 'failed':
        return this.failed(outcome, now);
      case 'aborted':
        return this.stopped(outcome.partial, null);
    }
  }

  private failed(outcome: Extract<GenerationOutcome, { kind: 'failed' }>, now: number): TurnInput {
    return { type: 'generation-failed', now, partial: outcome.partial, failure: outcome.failure, limits: limitsOf(this.ports.settings.current()) };
  }

  /** Stores what a stream has brought so far, without waiting for it. The fence keeps a lost step from writing over a newer one. */
  private sketch(entryId: string, partial: AssistantMessage): void {
    const { session_id, turn_id, version } = this.record;
    this.ports.journal
      .commit(
        [
          { kind: 'check-record', session_id, version },
          { kind: 'put-entry', session_id, entry: { entry_id: entryId, timestamp: this.ports.clock.now(), origin: { turn_id }, message: partial } },
        ],
        'sketch',
      )
      .catch((error: unknown) => this.feed.notice(`A part of the answer could not be stored yet: ${String(error)}`));
  }

  private systemPrompt(): string {
    const { options, session_id, depth } = this.record;
    const settings = this.ports.settings.current();
    return buildSystemPrompt({
      mode: options.mode,
      strategy: options.system_prompt_strategy,
      custom: options.system_prompt,
      expose: options.functions?.expose ?? 'agent_trigger',
      output: options.output.type,
      runtime: { session_id, depth, working_directory: workingDirectory(settings.default_filesystem_root), policy: options.functions },
    }).system_prompt;
  }

  private async invoke(call: PlannedCall): Promise<TurnInput> {
    const { bus, journal, settings, clock } = this.ports;
    const { dispatch_timeout_ms, max_result_bytes } = settings.current();
    failpoint('dispatch:before');
    const startedAt = clock.now();
    this.feed.callStarted(this.record.step, call);
    const outcome = await dispatch(bus, this.record, call, this.policy, { timeoutMs: dispatch_timeout_ms, maxResultBytes: max_result_bytes, signal: this.signal });
    failpoint('dispatch:after');
    const now = clock.now();
    if (outcome.kind === 'stopped') return this.stopped(null, null);
    this.feed.callFinished(this.record.step, call, outcome.result, now - startedAt);
    const returned = { call_id: call.id, result: outcome.result };
    if (this.signal.aborted) return this.stopped(null, returned);
    this.waiting = (await journal.parked(this.record.session_id)).length > 0;
    return { type: 'call-returned', now, ...returned, plan: this.plan, waiting: this.waiting };
  }

  /** The stop is carried out on the record that asked for it. */
  private async stopped(partial: AssistantMessage | null, returned: Extract<TurnInput, { type: 'stopped' }>['returned']): Promise<TurnInput> {
    const fresh = await this.ports.journal.load(this.record.session_id);
    if (fresh !== null && fresh.turn_id === this.record.turn_id && fresh.claims === this.record.claims) this.record = fresh;
    return { type: 'stopped', now: this.ports.clock.now(), partial, returned };
  }
}

/** What an input amounts to when a stop came first: finished text and results are kept, the rest is not begun. */
function stoppedBy(input: TurnInput, now: number): TurnInput {
  const partial = input.type === 'generated' ? input.message : input.type === 'generation-failed' ? input.partial : null;
  const returned = input.type === 'call-returned' ? { call_id: input.call_id, result: input.result } : null;
  return input.type === 'stopped' ? input : { type: 'stopped', now, partial, returned };
}

/** The failpoint name of a commit: what it makes durable. */
function pointOf(decision: Decision, input: TurnInput): string {
  if (decision.next.do === 'rest' && decision.next.outcome === 'ended') return `turn-${decision.record.status}`;
  return input.type;
}

export const limitsOf = (settings: Limits): Limits => ({
  step_max_retries: settings.step_max_retries, step_backoff_ms: settings.step_backoff_ms, max_transient_resumes: settings.max_transient_resumes,
});

const responseFormat = (output: OutputContract): { response_format?: ResponseFormat } => (output.type === 'json' ? { response_format: output } : {});
const workingDirectory = (root: string | null): string | null => (root === 'off' ? null : (root ?? process.cwd()));
