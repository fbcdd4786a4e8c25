import { type AssistantMessage, entryIds, type JsonValue, type TurnStepPayload, textOf } from '#libs/contracts';
import { seedWrites } from '../../functions/seed.js';
import { userAfter, wireMessages } from '../../model/wire-order.js';
import { valueFault } from '../../output/contract.js';
import { deliverableOf } from '../../output/deliverable.js';
import { compilePolicy, type DispatchPolicy } from '../../policy/policy.js';
import type { Write } from '../../ports/journal.js';
import { isLive, type TurnRecord } from '../../record/record.js';
import { childIds } from '../../spawn/ids.js';
import { addressCalls, type PlannedCall, planCalls } from '../calls.js';
import type { TurnFailure, TurnInput } from '../decision.js';
import { syntheticResult } from '../results.js';
import type { SessionState } from './store.js';
import type { World } from './world.js';

/** How a paused actor goes on: as it should, or with a store that fails before or after it has written. */
export type Command = 'go' | 'fail-before' | 'fail-after';
/** An actor of a history; it pauses before and after every action, and whoever drives it may never resume it: a crash. */
export type Actor = Generator<string, void, Command>;
type Part<T> = Generator<string, T, Command>;

/** What the model of a session had before it when it said its last word. */
export interface Sight {
  session: SessionState;
  seen: ReadonlySet<string>;
}

/** The store failed, or did so only as far as the caller can tell. */
export class StoreFailure extends Error {}

/** How deep children nest, how many a turn has, and how long it waits for one: mostly for as long as a history lasts. */
const MAX_DEPTH = 2;
const MAX_CHILDREN = 3;
const CHILD_PATIENCE = 400;

const limits = { step_max_retries: 1, step_backoff_ms: 1, max_transient_resumes: 1, max_validation_retries: 1 };

/** Commits with a pause before (a crash there loses the writes) and after (a crash there loses the answer). */
export function* commit(world: World, writes: readonly Write[], point: string, sight?: Sight): Part<boolean> {
  if (writes.length === 0) return true;
  const command = yield `commit ${point}`;
  if (command === 'fail-before') throw new StoreFailure();
  const result = world.commit(writes, point, sight);
  if (command === 'fail-after') throw new StoreFailure();
  yield `${result} ${point}`;
  return result === 'committed';
}

/** One run of a queued step, as the executor does it: the pure machine decides, this shell does. */
export class StepRunner {
  /** The executor's stop signal. */
  aborted = false;
  private record!: TurnRecord;
  private policy!: DispatchPolicy;
  private plan: readonly PlannedCall[] = [];
  private waiting = false;
  private spawning: PlannedCall | null = null;
  private watermark: string | null | undefined;
  /** The entries that the model has seen in this step. */
  private seen: ReadonlySet<string> | undefined;
  private readonly session: SessionState;

  constructor(
    private readonly world: World,
    readonly payload: TurnStepPayload,
  ) {
    this.session = world.store.of(payload.session_id);
  }

  *run(): Actor {
    const record = this.session.record;
    yield 'load';
    if (record === null || record.turn_id !== this.payload.turn_id) return;
    this.record = record;
    this.policy = compilePolicy(record.options.functions);
    try {
      yield* this.perform();
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
      yield* this.recordFailure(record.claims);
    }
  }

  private *perform(): Part<void> {
    let input: TurnInput = yield* this.begin();
    for (let redecided = 0; redecided < 50; ) {
      const decision = this.world.decide(this.record, input);
      if (!(yield* commit(this.world, decision.writes, input.type, this.sight()))) {
        const again = yield* this.afterConflict(input);
        if (again === null) return;
        input = again;
        redecided += 1;
        continue;
      }
      this.record = decision.record;
      switch (decision.next.do) {
        case 'rest':
          return;
        case 'generate':
          input = yield* this.generate();
          break;
        case 'invoke':
          input = yield* this.invoke(decision.next.call);
          break;
        case 'screen':
          input = yield* this.screen(decision.next.call);
          break;
        case 'spawn':
          input = yield* this.spawn(decision.next.call);
          break;
      }
    }
    this.world.violate('live', 'a step began again too often');
  }

  private *begin(): Part<TurnInput> {
    const { turn_id, step } = this.payload;
    const parked = this.session.parked;
    yield 'read parked';
    const { failures, claims, calls, phase } = this.record;
    const stored = failures + claims + calls.length > 0 ? this.session.entry(entryIds.assistant(turn_id, step)) : null;
    if (stored?.kind === 'message' && stored.message.role === 'assistant' && phase === 'calls') {
      this.plan = this.planOf(stored.message);
      this.watermark = stored.id;
      this.waiting = this.isWaiting();
    }
    return {
      type: 'begin',
      now: this.world.now(),
      turn_id,
      step,
      parked,
      plan: this.plan,
      sketched: stored !== null,
      waiting: this.waiting,
      limits,
    };
  }

  private sight(): Sight | undefined {
    return this.seen === undefined ? undefined : { session: this.session, seen: this.seen };
  }

  private planOf(message: AssistantMessage): PlannedCall[] {
    const { output } = this.record.options;
    return planCalls(message, {
      refusalOf: (id) => this.policy.refusal(id),
      isHooked: (id) => id.endsWith('::hooked'),
      ...(output.type === 'json' ? { submissionFault: (value: JsonValue) => valueFault(output, value) } : {}),
    });
  }

  private *afterConflict(input: TurnInput): Part<TurnInput | null> {
    const { turn_id, step } = this.payload;
    const fresh = this.session.record;
    yield 'load again';
    const mine =
      fresh !== null &&
      fresh.turn_id === turn_id &&
      fresh.step === step &&
      fresh.status === 'running' &&
      fresh.claims === this.record.claims;
    if (!mine) return null;
    this.record = fresh;
    if (input.type === 'begin') return yield* this.begin();
    this.waiting = this.isWaiting();
    if (input.type === 'call-spawned' && this.spawning !== null) return yield* this.spawn(this.spawning);
    return { ...input, ...('waiting' in input ? { waiting: this.waiting } : {}) };
  }

  private isWaiting(): boolean {
    const { parked, entries } = this.session;
    return parked.length > 0 || (this.watermark !== undefined && userAfter(entries.slice(), this.watermark));
  }

  private *generate(): Part<TurnInput> {
    const { turn_id, step } = this.record;
    const entryId = entryIds.assistant(turn_id, step);
    const window = this.session.entries.slice();
    yield 'read window';
    const { messages, callIds } = wireMessages(window, entryId);
    this.watermark = window.at(-1)?.id ?? null;
    this.seen = new Set(window.map((entry) => entry.id));
    const last = messages.at(-1);
    if (last === undefined || last.role === 'assistant') {
      const said = this.record.turn_count === 0 ? null : (last ?? null);
      const deliverable = deliverableOf(this.record.options.output, textOf(said?.content ?? []));
      return { type: 'nothing-to-reply', now: this.world.now(), last: said, deliverable, waiting: this.waiting, limits };
    }
    if (this.aborted) return yield* this.stopped(null, null);
    const reply = this.world.generating(this.record, window, entryId);
    for (const partial of reply.sketches) {
      yield 'stream';
      if (this.aborted) return yield* this.stopped(partial, null);
      const { session_id, version } = this.record;
      const entry = { entry_id: entryId, timestamp: partial.timestamp, origin: { turn_id }, message: partial };
      this.world.commit(
        [
          { kind: 'check-record', session_id, version },
          { kind: 'put-entry', session_id, entry },
        ],
        'sketch',
      );
    }
    yield 'stream ends';
    if (this.aborted) return yield* this.stopped(reply.sketches.at(-1) ?? null, null);
    const now = this.world.now();
    if (reply.failure !== null) return { type: 'generation-failed', now, partial: reply.partial, failure: reply.failure, limits };
    const message = addressCalls(reply.message, turn_id, step, (id) => callIds.has(id));
    this.plan = this.planOf(message);
    this.waiting = this.isWaiting();
    const deliverable = deliverableOf(this.record.options.output, textOf(message.content));
    return { type: 'generated', now, message, plan: this.plan, waiting: this.waiting, deliverable, limits };
  }

  private *invoke(call: PlannedCall): Part<TurnInput> {
    yield `before ${call.function_id}`;
    if (this.aborted) return yield* this.stopped(null, null);
    const result = this.world.invoked(this.record, call);
    yield `after ${call.function_id}`;
    const returned = { call_id: call.id, result };
    if (this.aborted) return yield* this.stopped(null, this.world.now() % 2 === 0 ? returned : null);
    this.waiting = this.isWaiting();
    return { type: 'call-returned', now: this.world.now(), ...returned, plan: this.plan, waiting: this.waiting, limits };
  }

  private *screen(call: PlannedCall): Part<TurnInput> {
    yield `hooks of ${call.function_id}`;
    if (this.aborted) return yield* this.stopped(null, null);
    const verdict = this.world.screened(call);
    yield 'hooks answered';
    this.waiting = this.isWaiting();
    return { type: 'call-screened', now: this.world.now(), call_id: call.id, verdict, plan: this.plan, waiting: this.waiting, limits };
  }

  private *spawn(call: PlannedCall): Part<TurnInput> {
    this.spawning = call;
    yield 'prepare child';
    if (this.aborted) return yield* this.stopped(null, null);
    const now = this.world.now();
    this.waiting = this.isWaiting();
    const around = { now, call_id: call.id, plan: this.plan, waiting: this.waiting, limits };
    const { session_id, turn_id, options, depth, children } = this.record;
    const ids = childIds(turn_id, call.id);
    const before = this.world.store.of(ids.session_id).record;
    const isTaken = isLive(before) && before.turn_id !== ids.turn_id;
    if (depth >= MAX_DEPTH || children.length >= MAX_CHILDREN || isTaken)
      return { type: 'call-returned', ...around, result: syntheticResult('spawn_refused', call.function_id, 'no more') };
    yield 'child prepared';
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'task' }], timestamp: now };
    const seed = {
      ...ids,
      options,
      before,
      depth: depth + 1,
      parent: { session_id, turn_id, function_call_id: call.id },
      messages: [{ entry_id: entryIds.idempotent(`task_${ids.turn_id}`), message, timestamp: now }],
      now,
    };
    return { type: 'call-spawned', ...around, child: ids, writes: seedWrites(seed), expires_at: now + CHILD_PATIENCE };
  }

  private *stopped(partial: AssistantMessage | null, returned: Extract<TurnInput, { type: 'stopped' }>['returned']): Part<TurnInput> {
    const fresh = this.session.record;
    yield 'load to stop';
    const mine = fresh !== null && fresh.turn_id === this.record.turn_id && fresh.claims === this.record.claims;
    if (mine) this.record = fresh;
    return { type: 'stopped', now: this.world.now(), partial: this.record.step === this.payload.step ? partial : null, returned };
  }

  private *recordFailure(claims: number): Part<void> {
    const { turn_id, step } = this.payload;
    const record = this.session.record;
    yield 'load to fail';
    const current =
      record !== null && record.turn_id === turn_id && record.step === step && record.status === 'running' && record.claims === claims;
    if (!current) return;
    const failure: TurnFailure = { code: 'harness/storage', message: 'the store failed', retryable: true };
    const decision = this.world.decide(record, { type: 'step-failed', now: this.world.now(), failure, limits });
    try {
      yield* commit(this.world, decision.writes, 'step-failed');
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error; // not even the failure could be stored: the step is still queued
    }
  }
}
