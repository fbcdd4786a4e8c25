import { setTimeout as sleep } from 'node:timers/promises';
import type { SendResponse } from '#libs/contracts';
import { seeded } from '../crash/random.js';
import { readDisk } from '../support/disk.js';
import { sessionFaults } from '../support/invariants.js';
import type { RedisServer } from '../support/redis-server.js';
import { enqueue, FIFO, JobLog } from './jobs.js';
import { Workers } from './workers.js';

/** How long Redis stays up or away at most, in ms. */
const UP_MS = 150;
const AWAY_MS = 250;
/** Turns and jobs that are begun in each of these times. */
const BATCH = 8;
const GROUPS = 5;

/** What came of it: everything that was accepted, and what was lost or doubled, in words. */
export interface KillsReport {
  turns: number;
  jobs: number;
  faults: string[];
}

/** Kills Redis again and again under workers that share turns and jobs by it, at any moment of their work, and starts it again. */
export async function killRedis(redis: RedisServer, { kills, seed }: { kills: number; seed: number }): Promise<KillsReport> {
  const random = seeded(seed);
  const log = new JobLog();
  const workers = await Workers.open(3, redis, { prepare: (runtime, nth) => log.register(runtime, nth, () => sleep(random() * 10)) });
  try {
    const { first, rigs } = workers;
    await first.call('queue::define', { queue: 'q', config: { ...FIFO, concurrency: 3 } });
    const sent: SendResponse[] = [];
    let jobs = 0;
    const batch = async (): Promise<void> => {
      const rig = rigs[Math.floor(random() * rigs.length)] ?? first;
      const turns = Array.from({ length: BATCH }, () => rig.send('go'));
      const queued = Array.from({ length: BATCH }, () => enqueue(rig, { g: `g${jobs % GROUPS}`, n: jobs++ }));
      sent.push(...(await Promise.all(turns)));
      await Promise.all(queued);
    };
    for (let kill = 0; kill < kills; kill += 1) {
      const before = batch();
      await sleep(random() * UP_MS);
      await redis.kill();
      const meanwhile = batch();
      await sleep(random() * AWAY_MS);
      await redis.up();
      await Promise.all([before, meanwhile]);
    }
    await workers.allCompleted(sent);
    await log.until(() => new Set(log.seen.map(({ job }) => job.n)).size === jobs);
    return { turns: sent.length, jobs, faults: [...turnFaults(workers, sent), ...log.faults(jobs)] };
  } finally {
    await workers.close();
  }
}

/** Each turn made its call once, and is whole on disk; nothing was reported but that Redis was away. */
function turnFaults({ calls, dataDir, rigs }: Workers, sent: readonly SendResponse[]): string[] {
  const counts = sent.flatMap(({ session_id }) => {
    const count = calls.get(session_id) ?? 0;
    return count === 1 ? [] : [`${session_id}: its call was made ${count} times`];
  });
  const reports = rigs.flatMap((rig) => rig.reports.filter((report) => !/Redis/.test(report)));
  return [...counts, ...readDisk(dataDir).sessions.flatMap(sessionFaults), ...reports];
}
