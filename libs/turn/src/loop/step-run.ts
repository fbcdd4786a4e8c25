import { type AssistantMessage, entryIds, type JsonObject, type TurnStepPayload, type TurnStepResult, textOf } from '#libs/contracts';
import { refusedAgain } from '../context/assemble.js';
import { answeredBefore } from '../context/compaction.js';
import { dispatch } from '../dispatch/dispatch.js';
import { failpoint } from '../failpoint.js';
import { addressCalls, type PlannedCall } from '../machine/calls.js';
import type { CallResult, Decision, Limits, TurnInput } from '../machine/decision.js';
import { decide } from '../machine/machine.js';
import { generate } from '../model/generate.js';
import { userAfter, wireMessages } from '../model/wire-order.js';
import { deliverableOf } from '../output/deliverable.js';
import { compilePolicy, type DispatchPolicy } from '../policy/policy.js';
import type { TurnRecord } from '../record/record.js';
import { prepareSpawn } from '../spawn/in-turn.js';
import type { RunTrace } from '../tracing/run-trace.js';
import { HookPoints } from './hook-points.js';
import { limitsOf } from './limits.js';
import { commitPatiently } from './patient-commit.js';
import type { LoopPorts } from './ports.js';
import { prepareRequest } from './request.js';
import { Sketches } from './sketches.js';
import { StepFeed } from './step-feed.js';
import { StepPlan } from './step-plan.js';

/** How often a step begins again on a changed record before it gives up and is queued again. */
const MAX_REDECIDE = 50;
/** What of a request is left for the next try, when the model has refused it as too large. */
const SMALLER = 0.6;

/**
 * Runs one step: asks the machine what to do, commits its writes, does it, and tells the machine what came of it, until
 * the machine rests. Every outside effect comes after the commit that announces it.
 */
export class StepRun {
  private readonly feed: StepFeed;
  private readonly sketches: Sketches;
  private readonly hooks: HookPoints;
  private readonly policy: DispatchPolicy;
  private readonly plan: StepPlan;
  private record: TurnRecord;
  private waiting = false;
  /** The pre-turn hooks have let the turn begin. */
  private begun = false;
  /** What the model has said of a request that was too large, and the tokens that the next one may have. */
  private refused: { reason: string; ceiling: number } | null = null;
  /** The call whose child was prepared last. */
  private spawning: PlannedCall | null = null;
  /** The last entry that the generation of this step has seen; null when there was none. */
  private watermark: string | null | undefined;

  constructor(
    private readonly ports: LoopPorts,
    record: TurnRecord,
    private readonly payload: TurnStepPayload,
    private readonly signal: AbortSignal,
    private readonly trace: RunTrace,
  ) {
    this.record = record;
    this.feed = new StepFeed(ports.feed, record);
    this.sketches = new Sketches(ports, (text) => this.feed.notice(text));
    this.hooks = new HookPoints(ports, signal, trace);
    this.policy = compilePolicy(record.options.functions, ports.settings.current().lift_never);
    this.plan = new StepPlan(record, this.policy, this.hooks);
  }

  /** The record as this run last knew it. */
  get latest(): TurnRecord {
    return this.record;
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
      this.trace.decided(this.record, decision);
      this.record = decision.record;
      this.feed.decided(decision, input);
      const { next } = decision;
      switch (next.do) {
        case 'rest':
          return this.answer(next.outcome);
        case 'generate':
          input = await this.generate();
          break;
        case 'screen':
          input = await this.screen(next.call, next.after);
          break;
        case 'spawn':
          input = await this.spawn(next.call);
          break;
        case 'invoke':
          input = await this.invoke(next.call);
          break;
        default: {
          const unknown: never = next;
          throw new Error(`unknown next ${JSON.stringify(unknown)}`);
        }
      }
    }
    throw new Error(`the record of ${this.record.session_id} changed too often during one step`);
  }

  private answer(outcome: 'skipped' | 'queued' | 'parked' | 'ended'): TurnStepResult {
    const { session_id, status, step } = this.record;
    return {
      session_id,
      status,
      ...(outcome === 'queued' ? { next_step: step } : {}),
      ...(outcome === 'skipped' ? { skipped: true } : {}),
    };
  }

  private async commit(decision: Decision, input: TurnInput): Promise<boolean> {
    if (decision.writes.length === 0) return true;
    const tell = (text: string): void => this.feed.notice(text);
    return (await commitPatiently(this.ports.journal, decision, pointOf(decision, input), this.signal, tell)) === 'committed';
  }

  /** What goes with every input about calls. */
  private around(): { now: number; plan: readonly PlannedCall[]; waiting: boolean; limits: Limits } {
    return {
      now: this.ports.clock.now(),
      plan: this.plan.now(this.record.calls),
      waiting: this.waiting,
      limits: limitsOf(this.ports.settings.current()),
    };
  }

  private async begin(): Promise<TurnInput> {
    const { journal, transcript } = this.ports;
    const { session_id, turn_id, step } = this.payload;
    const parked = await journal.parked(session_id);
    const { failures, claims, calls, phase } = this.record;
    const stored = failures + claims + calls.length > 0 ? await transcript.entry(session_id, entryIds.assistant(turn_id, step)) : null;
    if (stored?.kind === 'message' && stored.message.role === 'assistant' && phase === 'calls') {
      this.plan.make(stored.message);
      this.watermark = stored.id;
      this.waiting = await this.isWaiting();
    }
    return { type: 'begin', turn_id, step, parked, sketched: stored !== null, ...this.around() };
  }

  /** The record changed under the step: what to tell the machine now, or null when the step belongs to somebody else. */
  private async afterConflict(input: TurnInput): Promise<TurnInput | null> {
    const { session_id, turn_id, step } = this.payload;
    const fresh = await this.ports.journal.load(session_id);
    const mine =
      fresh !== null &&
      fresh.turn_id === turn_id &&
      fresh.step === step &&
      fresh.status === 'running' &&
      fresh.claims === this.record.claims;
    if (!mine) return null;
    this.record = fresh;
    if (input.type === 'begin') return await this.begin();
    this.waiting = await this.isWaiting();
    // The child's session may be what has changed.
    if (input.type === 'call-spawned' && this.spawning !== null) return await this.spawn(this.spawning);
    return 'waiting' in input ? { ...input, waiting: this.waiting } : input;
  }

  /** True when a message waits that no generation of this step has seen: parked, or put into the transcript by somebody else. */
  private async isWaiting(): Promise<boolean> {
    const { journal, transcript } = this.ports;
    const { session_id } = this.record;
    if ((await journal.parked(session_id)).length > 0) return true;
    return this.watermark !== undefined && userAfter(await transcript.window(session_id), this.watermark);
  }

  private async generate(): Promise<TurnInput> {
    const { bus, transcript, settings, clock } = this.ports;
    const { session_id, turn_id, step, options } = this.record;
    const entryId = entryIds.assistant(turn_id, step);
    const window = await transcript.window(session_id);
    this.watermark = window.at(-1)?.id ?? null;
    const { messages, callIds } = wireMessages(window, entryId);
    const last = messages.at(-1);
    if (last === undefined || last.role === 'assistant') return this.nothingToReply(last ?? null);
    const veto = step === 0 && !this.begun ? await this.hooks.preTurn(this.record) : null;
    if (veto !== null) return { type: 'vetoed', now: clock.now(), failure: veto };
    this.begun = true;
    const { hooks, policy, signal } = this;
    const source = { window, messages, ceiling: this.refused?.ceiling ?? null };
    const request = await this.trace.within({ name: 'assemble' }, () =>
      prepareRequest(this.ports, this.record, source, { hooks, policy, signal }),
    );
    if (signal.aborted) return await this.stopped(null, null);
    if (request.kind === 'compacted') {
      failpoint('compaction:after');
      return { type: 'compacted', now: clock.now(), data: request.data, usage: request.usage };
    }
    if (request.kind === 'failed') return { type: 'vetoed', now: clock.now(), failure: refusedAgain(this.refused, request.failure) };
    for (const notice of request.notices) this.feed.notice(notice);
    this.feed.stepStarted(step);
    const { router_timeout_ms, stream_coalesce_ms, prompt_cache_sections: cache } = settings.current();
    const outcome = await this.trace.generation(() =>
      generate(
        bus,
        this.record,
        request.generation,
        { delta: (kind, delta) => this.feed.delta(step, kind, delta), sketch: (partial) => this.sketches.store(this.record, partial) },
        { timeoutMs: router_timeout_ms, coalesceMs: stream_coalesce_ms, cache, signal, now: () => clock.now() },
      ),
    );
    failpoint('generation:after');
    switch (outcome.kind) {
      case 'message': {
        const earlier = await answeredBefore(transcript, this.record, window, outcome.message);
        const message = addressCalls(outcome.message, turn_id, step, (id) => callIds.has(id) || earlier.has(id));
        this.plan.make(message);
        this.feed.message(step, message);
        const noted = await this.hooks.postGenerate(this.record, message);
        this.waiting = await this.isWaiting();
        const annotations = { ...request.annotations, ...noted };
        return {
          type: 'generated',
          message,
          deliverable: deliverableOf(options.output, textOf(message.content)),
          ...withNotes(annotations),
          ...(request.spent === null ? {} : { spent: request.spent }),
          ...this.around(),
        };
      }
      case 'failed':
        if (outcome.failure.kind === 'context_overflow' && this.refused === null) {
          this.refused = { reason: outcome.failure.message, ceiling: Math.floor(request.tokens * SMALLER) };
          this.feed.notice(`The request is too large for the model; it is made smaller once: ${outcome.failure.message}`);
          return await this.generate();
        }
        return {
          type: 'generation-failed',
          now: clock.now(),
          partial: outcome.partial,
          failure: outcome.failure,
          limits: limitsOf(settings.current()),
        };
      case 'aborted':
        return await this.stopped(outcome.partial, null);
    }
  }

  private nothingToReply(tail: AssistantMessage | null): TurnInput {
    const { turn_count, options } = this.record;
    const last = turn_count === 0 ? null : tail;
    return { type: 'nothing-to-reply', last, deliverable: deliverableOf(options.output, textOf(last?.content ?? [])), ...this.around() };
  }

  private async screen(call: PlannedCall, after: string | null): Promise<TurnInput> {
    const verdict = await this.trace.during(call.id, () => this.hooks.preTrigger(this.record, call, after));
    if (this.signal.aborted) return await this.stopped(null, null);
    if (verdict.kind === 'hold') this.feed.callPending(this.record.step, call);
    return { type: 'call-screened', call_id: call.id, verdict, ...this.around() };
  }

  private async spawn(call: PlannedCall): Promise<TurnInput> {
    this.spawning = call;
    return { ...(await prepareSpawn(this.ports, this.record, call)), ...this.around() };
  }

  private async invoke(call: PlannedCall): Promise<TurnInput> {
    const { bus, settings, clock } = this.ports;
    const { dispatch_timeout_ms, max_result_bytes } = settings.current();
    failpoint('dispatch:before');
    const startedAt = clock.now();
    this.feed.callStarted(this.record.step, call);
    const options = { timeoutMs: dispatch_timeout_ms, maxResultBytes: max_result_bytes, signal: this.signal };
    const outcome = await this.trace.during(call.id, () => dispatch(bus, this.record, call, this.policy, options));
    failpoint('dispatch:after');
    if (outcome.kind === 'stopped') return await this.stopped(null, null);
    const seen = await this.trace.during(call.id, () => this.hooks.postTrigger(this.record, call, outcome.result));
    if (seen === null) return await this.stopped(null, null);
    const { result, annotations } = seen;
    this.feed.callFinished(this.record.step, call, result, clock.now() - startedAt);
    if (this.signal.aborted) return await this.stopped(null, { call_id: call.id, result });
    this.waiting = await this.isWaiting();
    return { type: 'call-returned', call_id: call.id, result, ...withNotes(annotations), ...this.around() };
  }

  /** The stop is carried out on the record that asked for it. */
  private async stopped(partial: AssistantMessage | null, returned: { call_id: string; result: CallResult } | null): Promise<TurnInput> {
    const fresh = await this.ports.journal.load(this.record.session_id);
    if (fresh !== null && fresh.turn_id === this.record.turn_id && fresh.claims === this.record.claims) this.record = fresh;
    const current = this.record.step === this.payload.step; // else a partial belongs to a step that another executor has finished
    return { type: 'stopped', now: this.ports.clock.now(), partial: current ? partial : null, returned };
  }
}

/** The failpoint name of a commit: what it makes durable. */
function pointOf(decision: Decision, input: TurnInput): string {
  if (decision.next.do === 'rest' && decision.next.outcome === 'ended') return `turn-${decision.record.status}`;
  return input.type;
}

const withNotes = (annotations: JsonObject | null): { annotations?: JsonObject } =>
  annotations === null || Object.keys(annotations).length === 0 ? {} : { annotations };
