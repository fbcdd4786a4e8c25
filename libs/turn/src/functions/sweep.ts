import { turnEnded } from '../loop/ended.js';
import type { LoopPorts } from '../loop/ports.js';
import { decide } from '../machine/machine.js';
import { isLive, isTerminal, type TurnRecord } from '../record/record.js';
import { traceDecision } from '../tracing/ended.js';

const MAX_RACES = 20;

/** What a sweep has to do beside its own turn: stop a child that nobody waits for any more. */
export type StopTurn = (request: { session_id: string; turn_id: string }) => Promise<unknown>;

/** Settles every pending call whose time is over; returns how many there were. Any number of sweeps at once settle each once. */
export async function sweepPending(ports: LoopPorts, stopTurn: StopTurn): Promise<{ ok: boolean; resolved: number }> {
  let resolved = 0;
  for (const sessionId of await ports.journal.due(ports.clock.now())) resolved += await sweepSession(ports, sessionId, stopTurn);
  return { ok: true, resolved };
}

async function sweepSession(ports: LoopPorts, sessionId: string, stopTurn: StopTurn): Promise<number> {
  for (let race = 0; race < MAX_RACES; race += 1) {
    const record = await ports.journal.load(sessionId);
    if (!isLive(record)) return 0;
    const now = ports.clock.now();
    const decision = decide(record, { type: 'expired', now });
    if (decision.writes.length === 0) return 0;
    if ((await ports.journal.commit(decision.writes, 'expired')) === 'conflict') continue;
    traceDecision(ports.spans, record, decision, now);
    if (isTerminal(decision.record.status)) await turnEnded(ports, decision.record);
    const expired = expiredCalls(record, now);
    for (const { child } of expired) if (child !== undefined) await stopTurn(child);
    return expired.length;
  }
  return 0; // the session is busy: the next sweep comes
}

const expiredCalls = (record: TurnRecord, now: number): TurnRecord['calls'] =>
  record.calls.filter((call) => call.state === 'pending' && call.expires_at !== undefined && call.expires_at <= now);
