import { isDeepStrictEqual } from 'node:util';
import { type AssistantMessage, type Entry, entryIds, type TurnStepPayload } from '#libs/contracts';
import type { ChildEndedEvent, CommitResult, Write } from '../../ports/journal.js';
import { isLive, isTerminal, type TurnOptions, type TurnRecord } from '../../record/record.js';
import type { PlannedCall } from '../calls.js';
import type { CallResult, Decision, Screening, TurnFailure, TurnInput } from '../decision.js';
import { decide } from '../machine.js';
import { answerParent, expire, resolve, send, stop, takeLeftover } from './callers.js';
import { checkAssistants, checkCommit, checkInvocation, checkMessages, checkResults, checkSeen, checkStopped } from './checks.js';
import { type Actor, type Command, type Sight, StepRunner, StoreFailure } from './shell.js';
import { MemoryStore, sessionOf } from './store.js';

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
    | 'leftover'
    | 'answer';
  n: number;
  /** Picks the session, or the actor that goes on. */
  at: number;
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
/** How the entries of tasks of children begin. */
const TASK_ENTRY = entryIds.idempotent('task_');
/** Actions after the last happening within which everything must have come to rest. */
const REST_LIMIT = 10_000;

/** A store, a model, the executors and callers of a session and its children, and the watch over what they do. */
export class World {
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  readonly store = new MemoryStore((committed) => {
    checkCommit(committed, this.violate);
    if (committed.after !== null && isTerminal(committed.after.status) && committed.before !== committed.after) {
      checkResults(committed.session.entries, `when the turn was ${committed.after.status}`, this.violate);
    }
    checkStopped(committed, (turnId) => this.isStopped(turnId), this.violate);
  });
  /** Turns that a stop has ended together with their descendants, and answered so. */
  readonly stopped = new Set<string>();
  /** Child turns whose end was delivered. */
  readonly answered = new Set<string>();
  private readonly parents = new Map<string, string>();
  private readonly acceptedOf = new Map<string, string[]>();
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

  /** The messages that a session has accepted, in order. */
  accepted(sessionId: string): string[] {
    const known = this.acceptedOf.get(sessionId) ?? [];
    this.acceptedOf.set(sessionId, known);
    return known;
  }

  /** True when a stop of the turn, or of one above it, has been answered. */
  private isStopped(turnId: string): boolean {
    const parent = this.parents.get(turnId);
    return this.stopped.has(turnId) || (parent !== undefined && this.isStopped(parent));
  }

  now(): number {
    this.time += 1;
    return this.time;
  }

  /** Plays the history, then lets everything come to rest, and looks at what is left. */
  play(): this {
    for (const happening of this.history.happenings) this.happen(happening);
    this.comeToRest();
    for (const { id, entries } of this.store.sessions.values()) {
      checkMessages(entries, this.accepted(id), this.violate);
      checkResults(entries, 'at the end', this.violate);
      checkAssistants(entries, this.generatedIds, this.violate);
    }
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
    const decision = this.decided(record, input);
    const { status } = decision.record;
    if (status !== 'running' && decision.next.do !== 'rest') this.violate('I8', `${decision.next.do} for a turn that is ${status}`);
    return decision;
  }

  private decided(record: TurnRecord, input: TurnInput): Decision {
    if (this.options.checkPurity !== true) return decide(record, input);
    const frozen = [deepFreeze(record), deepFreeze(input)] as const;
    const [first, second] = [decide(...frozen), decide(...frozen)];
    if (!isDeepStrictEqual(first, second)) this.violate('pure', `${input.type} was decided twice in two ways`);
    return deepFreeze(first);
  }

  commit(writes: readonly Write[], point: string, sight?: Sight): CommitResult {
    for (const write of writes) {
      if (write.kind !== 'emit' || write.event.type !== 'harness::turn-started') continue;
      const { turn_id, parent } = write.event.payload;
      if (parent) this.parents.set(turn_id, parent.turn_id);
    }
    const result = this.store.commit(writes);
    if (result === 'committed' && sight !== undefined) checkSeen(sight.session, sight.seen, this.violate);
    if (result === 'committed') this.noteTasks(writes);
    this.trace.push(`   ${point} ${result}: ${[...new Set(writes.map(sessionOf))].map((id) => this.stateOf(id)).join('; ')}`);
    return result;
  }

  /** The task of a child is a message that its session has accepted. */
  private noteTasks(writes: readonly Write[]): void {
    for (const write of writes)
      if (write.kind === 'append-entry' && write.entry.entry_id.startsWith(TASK_ENTRY))
        this.accepted(write.session_id).push(write.entry.entry_id);
  }

  private stateOf(sessionId: string | null): string {
    const { record, job } = this.store.of(sessionId ?? SESSION);
    return `${record?.turn_id} v${record?.version} ${record?.status} step ${record?.step}/${record?.phase}, job ${job?.step ?? 'none'}`;
  }

  /** A generation begins: the transcript before it must be whole. */
  generating(record: TurnRecord, window: readonly Entry[], entryId: string): Reply {
    // An executor that has lost its step may work on what it read before; nothing of it is stored.
    if (this.store.of(record.session_id).record?.version === record.version)
      checkResults(window, 'before a generation', this.violate, entryId);
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
    checkInvocation(record, this.store.of(record.session_id).record, call, times, this.violate);
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
  abortAll(sessionId: string): void {
    for (const { runner } of this.actors) if (runner?.payload.session_id === sessionId) runner.aborted = true;
  }

  stepsRun(sessionId: string): number {
    return this.actors.filter(({ runner }) => runner?.payload.session_id === sessionId).length;
  }

  private happen({ kind, n, at }: Happening): void {
    const sessions = [...this.store.sessions.values()];
    // Mostly the first session, else one of the children.
    const session = at % 2 === 0 ? this.store.of(SESSION) : (sessions[at % Math.max(1, sessions.length)] ?? this.store.of(SESSION));
    switch (kind) {
      case 'go':
      case 'fail-before':
      case 'fail-after':
        if (this.actors.length === 0) this.deliverAll();
        else this.resume((n + at) % this.actors.length, kind);
        return;
      case 'deliver':
        this.deliver(session.job);
        return;
      case 'deliver-old':
        this.deliver(this.delivered[(n + at) % Math.max(1, this.delivered.length)] ?? null);
        return;
      case 'crash':
        this.trace.push('crash');
        this.actors.splice(0);
        for (const each of sessions) each.takeOver();
        this.deliverAll();
        return;
      case 'stall':
        this.trace.push('another process takes over from a stalled one');
        session.takeOver();
        this.deliver(session.job);
        return;
      case 'send':
        this.start('send', send(this, session.id, this.accepted(session.id).length), null);
        return;
      case 'stop':
        this.start('stop', stop(this, session.id, n), null);
        return;
      case 'resolve':
        this.start('resolve', resolve(this, session.id, n), null);
        return;
      case 'expire':
        this.start('sweep', expire(this, session.id), null);
        return;
      case 'leftover':
        this.start('leftover', takeLeftover(this, session.id), null);
        return;
      case 'answer': {
        const ended = this.ends[(n + at) % Math.max(1, this.ends.length)];
        if (ended !== undefined) this.start('answer', answerParent(this, ended), null);
        return;
      }
      default: {
        const unknown: never = kind;
        throw new Error(`unknown happening ${String(unknown)}`);
      }
    }
  }

  /** The ends of children so far, whether they were delivered or not. */
  private get ends(): ChildEndedEvent[] {
    return this.store.events.filter((event) => event.type === 'harness::child-ended');
  }

  private deliverAll(): void {
    for (const { job } of this.store.sessions.values()) this.deliver(job);
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
      else if (!this.goOn()) break;
    }
    for (const { id, record, parked } of this.store.sessions.values()) {
      if (isLive(record)) this.violate('live', `the turn of ${id} is ${record.status} and nothing goes on with it`);
      if (parked.length > 0) this.violate('live', `${parked.length} messages of ${id} are parked for ever`);
    }
  }

  /** Starts what is still to be done; false when there is nothing. A sweep comes only when nothing else is left. */
  private goOn(): boolean {
    const sessions = [...this.store.sessions.values()];
    const queued = sessions.filter((session) => session.job !== null);
    const ended = this.ends.find(({ payload }) => !this.answered.has(payload.turn_id));
    const left = sessions.find(({ record, parked }) => parked.length > 0 && !isLive(record));
    const waits = sessions.filter(({ record }) => record?.status === 'awaiting_functions');
    if (queued.length > 0) for (const { job } of queued) this.deliver(job);
    else if (ended !== undefined) this.start('answer', answerParent(this, ended), null);
    else if (left !== undefined) this.start('leftover', takeLeftover(this, left.id), null);
    else for (const { id } of waits) this.start('sweep', expire(this, id), null);
    for (const { record } of waits) if (ended === undefined) this.checkChildren(record);
    return this.actors.length > 0;
  }

  /** Once all ends are delivered, no call waits for a child that has ended. */
  private checkChildren(record: TurnRecord | null): void {
    for (const { id, state, child } of record?.calls ?? []) {
      if (state === 'pending' && child !== undefined && this.answered.has(child.turn_id))
        this.violate('child', `call ${id} of ${record?.turn_id} waits for ${child.turn_id}, which has ended`);
    }
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
