import { setTimeout as sleep } from 'node:timers/promises';
import { openTurns } from '../support/disk.js';
import type { Kind, Load } from './protocol.js';
import { seeded } from './random.js';
import type { Sender } from './sender.js';

const UNDER_LOAD: readonly Kind[] = [
  'text',
  'text',
  'slow',
  'tools',
  'tools',
  'refused',
  'throws',
  'steer',
  'stop',
  'halt',
  'drop',
  'held',
  'lapse',
  'spawn',
  'detach',
  'vetoed',
  'barred',
  'lost',
  'note',
  'chase',
];
/** How often somebody looks for calls that are held, in ms; each is let go on every other time. */
const RELEASE_MS = 25;

/** Sends to some sessions at random until the process dies; half of the messages do not wait for the turn before them. */
export async function load(sender: Sender, dataDir: string, { sessions, life, seed, repeats, jobs }: Load): Promise<void> {
  const again = async (): Promise<void> => {
    for (const send of repeats) await sender.send(send);
  };
  const releases = async (): Promise<void> => {
    const random = seeded(seed * 7_919 + life);
    for (;;) {
      for (const record of openTurns(dataDir)) if (random() < 0.5) await sender.release(record);
      await sleep(RELEASE_MS);
    }
  };
  const enqueues = async (): Promise<void> => {
    const random = seeded(seed * 31 + life);
    for (let n = 0; jobs === true; n += 1) {
      const group = `group-${Math.floor(random() * sessions)}`;
      await sender.enqueue({ group, series: `${life}`, n });
      await sleep(random() * 20);
    }
  };
  const one = async (session: number): Promise<void> => {
    const random = seeded(seed * 1_000_003 + life * 101 + session);
    const session_id = `load-${session}`;
    for (let n = 0; ; n += 1) {
      const kind = UNDER_LOAD[Math.floor(random() * UNDER_LOAD.length)];
      const contract = random() < 0.15 ? ({ contract: true } as const) : {};
      await sender.send({ session_id, text: `${kind} ${session_id} ${life}.${n}`, key: `k-${life}-${session}-${n}`, ...contract });
      if (random() < 0.5) await sender.over(session_id);
      else await sleep(random() * 20);
    }
  };
  await Promise.all([again(), releases(), enqueues(), ...Array.from({ length: sessions }, (_, session) => one(session))]);
}
