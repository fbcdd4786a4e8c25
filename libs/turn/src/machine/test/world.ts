import { isDeepStrictEqual } from 'node:util';
import { type AssistantMessage, type Entry, entryIds, type TurnStepPayload } from '#libs/contracts';
import type { CommitResult, Write } from '../../ports/journal.js';
import { isLive, isTerminal, type TurnOptions, type TurnRecord } from '../../record/record.js';
import type { PlannedCall } from '../calls.js';
import type { CallResult, Decision, Screening, TurnFailure, TurnInput } from '../decision.js';
import { decide } from '../machine.js';
import { expire, resolve, send, stop, takeLeftover } from './callers.js';
import { checkAssistants, checkCommit, checkInvocation, checkMessages, checkResults, checkSeen } from './checks.js';
import { type Actor, type Command, StepRunner, StoreFailure } from './shell.js';
import { MemoryStore } from './store.js';

/** What the model does in one generation; `sketches` are the partials that are stored meanwhile. */
export interface Reply {
  message: AssistantMessage;
  sketches: readonly AssistantMessage[];
  failure: TurnFailure | null;
  partial: AssistantMessage | null;
}

/** One thing that happens; `n` picks whom it happens to. */
export interface Happening {
  kind:
    | 'go'
    | 'fail-before'
    | 'fail-after'
    | 'deliver'
    | 'deliver-old'
    | 'crash'
    | 'stall'
    | 'send'
    | 'stop'
    | 'resolve'
    | 'expire'
    | 'leftover';
  n: number;
}

/** A whole history: what the turns may do, what the model says, and what happens in which order. */
export interface History {
  options: TurnOptions;
  replies: readonly Reply[];
  happenings: readonly Happening[];
}

export interface Violation {
  invariant: string;
  what: string;
}

const SESSION = 's_1';
/** Actions after the last happening within which everything must have come to rest. */
const REST_LIMIT = 3_000;

/** A store, a model, the executors and callers of one session, and the watch over what they do. */
export class World {
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  readonly store = new MemoryStore((committed) => {
    checkCommit(committed, this.violate);
    if (committed.after !== null && isTerminal(committed.after.status) && committed.before !== committed.after) {
      checkResults(this.store.entries, `when the turn was ${committed.after.status}`, this.violate);
    }
  });
  readonly accepted: string[] = [];
  private readonly actors: { name: string; actor: Actor; runner: StepRunner | null }[] = [];
  private readonly delivered: TurnStepPayload[] = [];
  private readonly invocations = new Map<string, number>();
  private readonly generatedIds = new Set<string>();
  private replies = 0;
  private screenings = 0;
  private time = 0;
  private names = 0;

  constructor(
    readonly history: History,
    private readonly options: { checkPurity?: boolean } = {},
  ) {}

  readonly violate = (invariant: string, what: string): void => {
    this.violations.push({ invariant, what });
    this.trace.push(`!! ${invariant}: ${what}`);
  };

  now(): number {
    this.time += 1;
    return this.time;
  }

  /** Plays the history, then lets everything come to rest, and looks at what is left. */
  play(): this {
    for (const happening of this.history.happenings) this.happen(happening);
    this.comeToRest();
    checkMessages(this.store.entries, this.accepted, this.violate);
    checkResults(this.store.entries, 'at the end', this.violate);
    checkAssistants(this.store.entries, this.generatedIds, this.violate);
    const ended = new Map<string, number>();
    for (const event of this.store.events)
      if (event.type === 'harness::turn-completed') ended.set(event.payload.turn_id, (ended.get(event.payload.turn_id) ?? 0) + 1);
    for (const event of this.store.events) {
      const { turn_id } = event.payload;
      if (event.type === 'harness::turn-started' && ended.get(turn_id) !== 1)
        this.violate('I6', `${ended.get(turn_id) ?? 0} turn-completed of ${turn_id}`);
    }
    return this;
  }

  decide(record: TurnRecord, input: TurnInput): Decision {
    if (this.options.checkPurity !== true) return decide(record, input);
    const frozen = [deepFreeze(record), deepFreeze(input)] as const;
    const [first, second] = [decide(...frozen), decide(...frozen)];
    if (!isDeepStrictEqual(first, second)) this.violate('pure', `${input.type} was decided twice in two ways`);
    return deepFreeze(first);
  }

  /** Commits; `seen` is what the model had before it when it said its last word. */
  commit(writes: readonly Write[], point: string, seen?: ReadonlySet<string>): CommitResult {
    const result = this.store.commit(writes);
    if (result === 'committed' && seen !== undefined) checkSeen(this.store, seen, this.violate);
    const { record, job } = this.store;
    this.trace.push(
      `   ${point} ${result}: ${record?.turn_id} v${record?.version} ${record?.status} step ${record?.step}/${record?.phase}, job ${job?.step ?? 'none'}`,
    );
    return result;
  }

  /** A generation begins: the transcript before it must be whole. */
  generating(record: TurnRecord, window: readonly Entry[], entryId: string): Reply {
    // An executor that has lost its step may work on what it read before; nothing of it is stored.
    if (this.store.record?.version === record.version) checkResults(window, 'before a generation', this.violate, entryId);
    if (record.turn_count >= record.options.max_turns)
      this.violate('limit', `generation ${record.turn_count + 1} of ${record.options.max_turns}`);
    const id = entryIds.assistant(record.turn_id, record.step);
    if (this.generatedIds.has(id)) this.trace.push('   generation again');
    this.generatedIds.add(id);
    const reply = this.history.replies[this.replies] ?? LAST_REPLY;
    this.replies += 1;
    return reply;
  }

  invoked(record: TurnRecord, call: PlannedCall): CallResult {
    const key = `${record.turn_id} ${call.id}`;
    const times = (this.invocations.get(key) ?? 0) + 1;
    this.invocations.set(key, times);
    checkInvocation(record, this.store.record, call, times, this.violate);
    if (typeof call.arguments === 'object' && call.arguments !== null && 'held' in call.arguments)
      this.trace.push('   with held arguments');
    return { content: [{ type: 'text', text: 'ok' }], details: null, is_error: times % 2 === 0 };
  }

  /** What the hooks of a call say; the same call may be asked about again after a crash. */
  screened(call: PlannedCall): Screening {
    this.screenings += 1;
    switch ((this.screenings + this.history.happenings.length) % 4) {
      case 0:
        return { kind: 'deny', by: 'h::deny', reason: 'no' };
      case 1:
        return { kind: 'hold', by: 'h::hold', arguments: { ...(call.arguments as object), held: true }, expires_at: this.now() + 50 };
      case 2:
        return { kind: 'run' };
      default:
        return { kind: 'run', arguments: { rewritten: true } };
    }
  }

  /** The signal of every running step of the session, as a stop gives it. */
  abortAll(): void {
    for (const { runner } of this.actors) if (runner !== null) runner.aborted = true;
  }

  get stepsRun(): number {
    return this.actors.filter(({ runner }) => runner !== null).length;
  }

  private happen({ kind, n }: Happening): void {
    switch (kind) {
      case 'go':
      case 'fail-before':
      case 'fail-after':
        if (this.actors.length === 0) this.deliver(this.store.job);
        else this.resume(n % this.actors.length, kind);
        return;
      case 'deliver':
        this.deliver(this.store.job);
        return;
      case 'deliver-old':
        this.deliver(this.delivered[n % Math.max(1, this.delivered.length)] ?? null);
        return;
      case 'crash':
        this.trace.push('crash');
        this.actors.splice(0);
        this.store.takeOver();
        this.deliver(this.store.job);
        return;
      case 'stall':
        this.trace.push('another process takes over from a stalled one');
        this.store.takeOver();
        this.deliver(this.store.job);
        return;
      case 'send':
        this.start('send', send(this, SESSION, this.accepted.length), null);
        return;
      case 'stop':
        this.start('stop', stop(this, n), null);
        return;
      case 'resolve':
        this.start('resolve', resolve(this, n), null);
        return;
      case 'expire':
        this.start('sweep', expire(this), null);
        return;
      case 'leftover':
        this.start('leftover', takeLeftover(this, SESSION), null);
        return;
      default: {
        const unknown: never = kind;
        throw new Error(`unknown happening ${String(unknown)}`);
      }
    }
  }

  private deliver(payload: TurnStepPayload | null): void {
    if (payload === null) return;
    this.delivered.push(payload);
    const runner = new StepRunner(this, payload);
    this.start(`step ${payload.turn_id}/${payload.step}`, runner.run(), runner);
  }

  private start(name: string, actor: Actor, runner: StepRunner | null): void {
    this.names += 1;
    this.actors.push({ name: `${this.names} ${name}`, actor, runner });
  }

  private resume(index: number, command: Command): void {
    const chosen = this.actors[index];
    if (chosen === undefined) return;
    const { done, value } = this.next(chosen.actor, command);
    this.trace.push(`${chosen.name}${command === 'go' ? '' : ` (${command})`}: ${done === true ? 'ends' : value}`);
    if (done === true) this.actors.splice(this.actors.indexOf(chosen), 1);
  }

  /** A caller whose commit fails gets an error and goes away; a step records its failure by itself. */
  private next(actor: Actor, command: Command): IteratorResult<string, void> {
    try {
      return actor.next(command);
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
      return { done: true, value: undefined };
    }
  }

  /** No more crashes, sends and stops: every turn must end in a bounded number of actions, and leave nothing parked. */
  private comeToRest(): void {
    this.trace.push('-- comes to rest');
    for (let actions = 0; actions < REST_LIMIT; actions += 1) {
      if (this.actors.length > 0) this.resume(actions % this.actors.length, 'go');
      else if (this.store.job !== null) this.deliver(this.store.job);
      else if (this.store.record?.status === 'awaiting_functions') this.start('sweep', expire(this), null);
      else if (this.store.parked.length > 0) this.start('leftover', takeLeftover(this, SESSION), null);
      else break;
    }
    if (isLive(this.store.record)) this.violate('live', `the turn is ${this.store.record.status} and nothing goes on with it`);
    if (this.store.parked.length > 0) this.violate('live', `${this.store.parked.length} messages are parked for ever`);
  }
}

const LAST_REPLY: Reply = {
  message: { role: 'assistant', content: [{ type: 'text', text: 'done' }], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 0 },
  sketches: [],
  failure: null,
  partial: null,
};

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}
