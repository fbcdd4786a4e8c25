import { newTurnId } from '#libs/contracts';
import { seedWrites, takeParked } from '../functions/seed.js';
import type { Write } from '../ports/journal.js';
import { isLive, type TurnRecord } from '../record/record.js';
import type { LoopPorts } from './ports.js';
import { turnFinished } from './step-feed.js';

const MAX_RACES = 100;

/** To be called when a commit has ended a turn outside of its step: tells the feed, and sees to what the turn left behind. */
export async function turnEnded(ports: LoopPorts, record: TurnRecord): Promise<void> {
  ports.feed.publish(turnFinished(record));
  await takeLeftover(ports, record.session_id);
}

/**
 * Sees to messages that were parked when a turn ended without taking them: a new turn is started for them, with the
 * options of the first one's send. After a stop they only join the transcript: the next send will have them answered.
 */
export async function takeLeftover(ports: LoopPorts, sessionId: string): Promise<void> {
  const { journal, clock, feed } = ports;
  for (let race = 0; race < MAX_RACES; race += 1) {
    const record = await journal.load(sessionId);
    const parked = await journal.parked(sessionId);
    const first = parked[0];
    if (first === undefined || record === null || isLive(record)) return;
    const take = takeParked(sessionId, parked);
    if (record.status === 'cancelled') {
      const entries = parked.map(
        ({ entry_id, message, timestamp }): Write => ({
          kind: 'append-entry',
          session_id: sessionId,
          entry: { entry_id, message, timestamp },
        }),
      );
      const check: Write = { kind: 'check-record', session_id: sessionId, version: record.version };
      if ((await journal.commit([check, ...entries, ...take], 'leftover')) === 'committed') return;
      continue;
    }
    const now = clock.now();
    const turnId = newTurnId();
    const seed = {
      session_id: sessionId,
      turn_id: turnId,
      options: first.options,
      before: record,
      depth: record.depth,
      parent: null,
      messages: parked,
      now,
    };
    if ((await journal.commit([...seedWrites(seed), ...take], 'leftover')) === 'conflict') continue;
    const { model, provider } = first.options;
    feed.publish({ type: 'turn_started', session_id: sessionId, turn_id: turnId, model, provider, timestamp: now });
    return;
  }
}
