import type { TurnInput } from '../decision.js';
import { isLive, type TurnOptions, type TurnRecord } from '../../record/record.js';
import { commit, type Actor } from './shell.js';
import type { World } from './world.js';

/** A send: parks for a running turn or starts one; begins again when the session changed in between. */
export function* send(world: World, sessionId: string, n: number): Actor {
  const { store } = world;
  for (let race = 0; ; race += 1) {
    const live = store.record;
    yield 'load';
    const now = world.now();
    const entry_id = `e_send_${n}_${now}`;
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: entry_id }], timestamp: now };
    if (isLive(live)) {
      const { options } = world.history;
      yield 'commit park';
      if (world.commit([{ kind: 'park-message', session_id: sessionId, turn_id: live.turn_id, parked: { entry_id, message, options, timestamp: now } }], 'park') === 'conflict') continue;
    } else {
      const record = seed(sessionId, `t_${now}`, world.history.options, live, now);
      const { turn_id } = record;
      yield 'commit seed';
      const seeded = world.commit(
        [
          { kind: 'append-entry', session_id: sessionId, entry: { entry_id, timestamp: now, message } },
          { kind: 'save-record', record, expectedVersion: live?.version ?? null },
          { kind: 'set-status', session_id: sessionId, status: 'working', timestamp: now },
          { kind: 'enqueue-step', payload: { session_id: sessionId, turn_id, step: 0 } },
          { kind: 'emit', event: { type: 'harness::turn-started', payload: { session_id: sessionId, turn_id, timestamp: now, depth: 0 } } },
        ],
        'seed',
      );
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
    const asks = !record.abort_requested && world.stepsRun > 0 && n % 3 !== 0;
    if (record.abort_requested && n % 2 === 0) return world.abortAll();
    const input: TurnInput = asks
      ? { type: 'stop-requested' }
      : { type: 'stopped', now: world.now(), partial: null, returned: null, parked: world.store.parked };
    yield 'decide';
    const { writes } = world.decide(record, input);
    if (!(yield* commit(world, writes, asks ? 'stop-requested' : 'turn-cancelled'))) continue;
    if (n % 5 !== 0) world.abortAll(); // a step of another process may hear of it late or never
    return;
  }
}

function seed(sessionId: string, turnId: string, options: TurnOptions, before: TurnRecord | null, now: number): TurnRecord {
  return {
    format: 1, session_id: sessionId, turn_id: turnId, version: (before?.version ?? 0) + 1, claims: 0, status: 'running', step: 0, phase: 'generate', turn_count: 0, calls: [],
    call_count: 0, options, depth: 0, parent: null, children: [], watermark: null, abort_requested: false, failures: 0, nudges: 0, result: null, result_error: null,
    reason: null, totals: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: null }, started_at: now, ended_at: null,
  };
}
