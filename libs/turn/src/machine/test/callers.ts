import { seedWrites, takeParked } from '../../functions/seed.js';
import type { Write } from '../../ports/journal.js';
import { isLive } from '../../record/record.js';
import type { TurnInput } from '../decision.js';
import { type Actor, commit } from './shell.js';
import type { World } from './world.js';

/** A send: parks for a running turn or starts one; begins again when the session changed in between. */
export function* send(world: World, sessionId: string, n: number): Actor {
  const { store } = world;
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
        depth: 0,
        parent: null,
        messages: [...left, { entry_id, message, timestamp: now }],
        now,
      };
      yield 'commit seed';
      const seeded = world.commit([...seedWrites(seed), ...takeParked(sessionId, left)], 'seed');
      if (seeded === 'conflict') continue;
    }
    world.accepted.push(entry_id);
    return;
  }
}

/**
 * A stop: asks whoever runs the step, or ends the turn itself. Which of the two depends on what the caller believes of
 * other processes; here it may believe anything.
 */
export function* stop(world: World, n: number): Actor {
  for (;;) {
    const record = world.store.record;
    yield 'load';
    if (!isLive(record)) return;
    const asks = record.status === 'running' && !record.abort_requested && world.stepsRun > 0 && n % 3 !== 0;
    if (record.abort_requested && n % 2 === 0) return world.abortAll();
    const input: TurnInput = asks ? { type: 'stop-requested' } : { type: 'stopped', now: world.now(), partial: null, returned: null };
    yield 'decide';
    const { writes } = world.decide(record, input);
    if (!(yield* commit(world, writes, asks ? 'stop-requested' : 'turn-cancelled'))) continue;
    if (n % 5 !== 0) world.abortAll(); // a step of another process may hear of it late or never
    return;
  }
}

/** Messages that an ended turn left parked: a new turn answers them, or after a stop they only join the transcript. */
export function* takeLeftover(world: World, sessionId: string): Actor {
  const { store } = world;
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
      depth: 0,
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
export function* resolve(world: World, n: number): Actor {
  const chosen = world.store.record?.calls.filter((call) => n > 3 || call.state === 'pending') ?? [];
  const call = chosen[n % Math.max(1, chosen.length)];
  if (call === undefined) return;
  for (;;) {
    const record = world.store.record;
    yield 'load';
    if (record === null) return;
    const answer =
      n % 2 === 0 ? { kind: 'execute' as const } : { kind: 'deliver' as const, result: { content: [], details: null, is_error: false } };
    const { writes } = world.decide(record, { type: 'resolved', now: world.now(), call_id: call.id, answer });
    if (writes.length === 0 || (yield* commit(world, writes, `resolve ${call.id}`))) return;
  }
}

/** Times out what is due. */
export function* expire(world: World): Actor {
  for (;;) {
    const record = world.store.record;
    yield 'load';
    if (record === null) return;
    const { writes } = world.decide(record, { type: 'expired', now: world.now() });
    if (writes.length === 0 || (yield* commit(world, writes, 'expire'))) return;
  }
}
