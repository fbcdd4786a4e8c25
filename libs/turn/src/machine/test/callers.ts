import type { ParentRef } from '#libs/contracts';
import { seedWrites, takeParked } from '../../functions/seed.js';
import type { ChildEndedEvent, Write } from '../../ports/journal.js';
import { isLive, type LiveRecord } from '../../record/record.js';
import type { TurnInput } from '../decision.js';
import { type Actor, type Command, commit } from './shell.js';
import type { World } from './world.js';

/** A send: parks for a running turn or starts one; begins again when the session changed in between. */
export function* send(world: World, sessionId: string, n: number): Actor {
  const store = world.store.of(sessionId);
  for (;;) {
    const live = store.record;
    yield 'load';
    const now = world.now();
    const entry_id = `e_send_${n}_${now}`;
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: entry_id }], timestamp: now };
    if (isLive(live)) {
      const { options } = world.history;
      yield 'commit merge';
      const left = store.parked;
      const merge: Write[] =
        live.status === 'running'
          ? [{ kind: 'park-message', session_id: sessionId, turn_id: live.turn_id, parked: { entry_id, message, options, timestamp: now } }]
          : [
              { kind: 'check-record', session_id: sessionId, version: live.version },
              ...[...left, { entry_id, message, timestamp: now }].map(
                (m): Write => ({
                  kind: 'append-entry',
                  session_id: sessionId,
                  entry: { entry_id: m.entry_id, message: m.message, timestamp: m.timestamp },
                }),
              ),
              ...takeParked(sessionId, left),
            ];
      if (world.commit(merge, 'merge') === 'conflict') continue;
    } else {
      const left = store.parked;
      const seed = {
        session_id: sessionId,
        turn_id: `t_${now}`,
        options: world.history.options,
        before: live,
        depth: live?.depth ?? 0,
        parent: null,
        messages: [...left, { entry_id, message, timestamp: now }],
        now,
      };
      yield 'commit seed';
      const seeded = world.commit([...seedWrites(seed), ...takeParked(sessionId, left)], 'seed');
      if (seeded === 'conflict') continue;
    }
    world.accepted(sessionId).push(entry_id);
    return;
  }
}

/**
 * A stop: asks whoever runs the step, or ends the turn itself. Which of the two depends on what the caller believes of
 * other processes; here it may believe anything.
 */
export function* stop(world: World, sessionId: string, n: number, turnId?: string): Actor {
  for (;;) {
    const record = world.store.of(sessionId).record;
    yield 'load';
    if (!isLive(record) || (turnId !== undefined && record.turn_id !== turnId)) return;
    if (!(yield* stopOne(world, record, n))) continue;
    for (const child of record.children) yield* stop(world, child.session_id, n, child.turn_id);
    world.stopped.add(record.turn_id);
    return;
  }
}

/** Stops one turn; false when its record changed in between. */
function* stopOne(world: World, record: LiveRecord, n: number): Generator<string, boolean, Command> {
  const { session_id } = record;
  if (!record.abort_requested || n % 2 !== 0) {
    const asks = record.status === 'running' && !record.abort_requested && world.stepsRun(session_id) > 0 && n % 3 !== 0;
    const input: TurnInput = asks ? { type: 'stop-requested' } : { type: 'stopped', now: world.now(), partial: null, returned: null };
    yield 'decide';
    const { writes } = world.decide(record, input);
    if (!(yield* commit(world, writes, asks ? 'stop-requested' : 'turn-cancelled'))) return false;
  }
  if (n % 5 !== 0) world.abortAll(session_id); // a step of another process may hear of it late or never
  return true;
}

/** Messages that an ended turn left parked: a new turn answers them, or after a stop they only join the transcript. */
export function* takeLeftover(world: World, sessionId: string): Actor {
  const store = world.store.of(sessionId);
  for (;;) {
    const [record, parked] = [store.record, store.parked];
    yield 'load';
    const first = parked[0];
    if (first === undefined || record === null || isLive(record)) return;
    const take = takeParked(sessionId, parked);
    const now = world.now();
    const seed = {
      session_id: sessionId,
      turn_id: `t_${now}`,
      options: first.options,
      before: record,
      depth: record.depth,
      parent: null,
      messages: parked,
      now,
    };
    const entries = parked.map(
      ({ entry_id, message, timestamp }): Write => ({
        kind: 'append-entry',
        session_id: sessionId,
        entry: { entry_id, message, timestamp },
      }),
    );
    const check: Write = { kind: 'check-record', session_id: sessionId, version: record.version };
    const writes = record.status === 'cancelled' ? [check, ...entries, ...take] : [...seedWrites(seed), ...take];
    if (yield* commit(world, writes, 'leftover')) return;
  }
}

/** Settles one call, pending or (as a late caller would) not: with a result, or by letting a held one go on. */
export function* resolve(world: World, sessionId: string, n: number): Actor {
  const record = world.store.of(sessionId).record;
  const chosen = record?.calls.filter((call) => n > 3 || call.state === 'pending') ?? [];
  const call = chosen[n % Math.max(1, chosen.length)];
  if (record === null || call === undefined) return;
  const answer: Answer = n % 2 === 0 ? { kind: 'execute' } : { kind: 'deliver', result: { content: [], details: null, is_error: false } };
  yield* settle(world, { session_id: sessionId, turn_id: record.turn_id, function_call_id: call.id }, answer);
}

type Answer = Extract<TurnInput, { type: 'resolved' }>['answer'];

function* settle(world: World, call: ParentRef, answer: Answer): Actor {
  for (;;) {
    const record = world.store.of(call.session_id).record;
    yield 'load';
    if (!isLive(record) || record.turn_id !== call.turn_id) return;
    const { writes } = world.decide(record, { type: 'resolved', now: world.now(), call_id: call.function_call_id, answer });
    if (writes.length === 0 || (yield* commit(world, writes, `resolve ${call.function_call_id}`))) return;
  }
}

/** Answers the parent of a child that has ended, as the delivery of that event does: at least once, maybe late. */
export function* answerParent(world: World, { payload }: ChildEndedEvent): Actor {
  if (world.store.of(payload.session_id).record?.turn_id !== payload.turn_id) world.trace.push('   answered late');
  yield* settle(world, payload.parent, { kind: 'deliver', result: payload.result });
  world.answered.add(payload.turn_id);
}

/** Times out what is due, and stops the children that nobody waits for any more. */
export function* expire(world: World, sessionId: string): Actor {
  for (;;) {
    const record = world.store.of(sessionId).record;
    yield 'load';
    if (record === null) return;
    const now = world.now();
    const { writes } = world.decide(record, { type: 'expired', now });
    if (writes.length === 0) return;
    if (!(yield* commit(world, writes, 'expire'))) continue;
    for (const { state, expires_at, child } of record.calls)
      if (state === 'pending' && expires_at !== undefined && expires_at <= now && child !== undefined)
        yield* stop(world, child.session_id, 1, child.turn_id);
    return;
  }
}
