import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { TurnRig } from '../support/turn-rig.js';
import { enqueue, FIFO, JobLog } from './jobs.js';
import { Workers } from './workers.js';

interface Row {
  receipt: string;
  dead: number;
  attempts: number;
  owner: string | null;
}

/** Does something with the database of a data folder, as another process would. */
function onDisk<T>(dataDir: string, work: (db: Sqlite.Database) => T): T {
  const db = new Sqlite(join(dataDir, 'harness.db'), { timeout: 10_000 });
  try {
    return work(db);
  } finally {
    db.close();
  }
}
const rowsOf = (dataDir: string): Row[] => onDisk(dataDir, (db) => db.prepare('SELECT * FROM jobs ORDER BY id').all() as Row[]);
const untilRows = async (dataDir: string, holds: (rows: Row[]) => boolean): Promise<void> =>
  await expect.poll(() => holds(rowsOf(dataDir)), { timeout: 30_000 }).toBe(true);

const define = (rig: TurnRig, config: object): Promise<unknown> => rig.call('queue::define', { queue: 'q', config });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function workers(...options: Parameters<typeof Workers.open>): Promise<Workers> {
  const opened = await Workers.open(...options);
  onTestFinished(async () => await opened.close());
  return opened;
}

describe.skipIf(!hasRedis)('workers that share their named queues by Redis (skipped where there is no redis-server)', () => {
  it('run each job once, in order within its group, and all together no more at once than the queue says', async () => {
    const log = new JobLog();
    const shared = await workers(3, await RedisServer.start(), {
      prepare: (runtime, nth) => log.register(runtime, nth, () => sleep(2)),
    });
    await define(shared.first, { ...FIFO, concurrency: 4 });
    await Promise.all(upTo(90).map((n) => enqueue(shared.rigs[n % 3] ?? shared.first, { g: `g${n % 9}`, n })));
    await log.until(() => log.seen.length === 90);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    expect(log.seen).toHaveLength(90);
    expect([log.most, log.overlaps]).toEqual([4, 0]);
    expect(new Set(log.seen.map(({ worker }) => worker)).size).toBeGreaterThan(1);
    for (const rig of shared.rigs) expect(rig.reports).toEqual([]);
  });

  it('keep the order of a long group', async () => {
    const log = new JobLog();
    const shared = await workers(2, await RedisServer.start(), { prepare: (runtime, nth) => log.register(runtime, nth) });
    await define(shared.first, FIFO);
    await Promise.all(upTo(100).map((n) => enqueue(shared.first, { g: 'a', n })));
    await log.until(() => log.seen.length === 100);
    expect(log.order('a')).toEqual(upTo(100));
    expect(log.overlaps).toBe(0);
  });

  it('try a job that fails again after growing pauses, before those behind it, and keep it as dead in the end', async () => {
    const log = new JobLog();
    const times: number[] = [];
    let broken = true;
    const shared = await workers(2, await RedisServer.start(), {
      prepare: (runtime, nth) =>
        log.register(runtime, nth, ({ n }) => {
          if (n !== 0 || !broken) return;
          times.push(performance.now());
          throw new Error('broken');
        }),
    });
    const [one, two] = shared.rigs as [TurnRig, TurnRig];
    await define(one, { ...FIFO, max_retries: 2, backoff_ms: 50 });
    const { messageReceiptId } = await enqueue(one, { g: 'a', n: 0 });
    await enqueue(one, { g: 'a', n: 1 });
    await log.until(() => log.order('a').includes(1));
    expect(log.order('a')).toEqual([0, 0, 0, 1]);
    const [first = 0, second = 0, third = 0] = times;
    expect([second - first >= 49, third - second >= 99]).toEqual([true, true]);
    const dead = await two.call<object[]>('engine::queue::dlq_messages', { queue: 'q' });
    expect(dead).toMatchObject([{ id: messageReceiptId, attempts: 3, error: 'broken' }]);
    broken = false;
    expect(await two.call('iii::queue::redrive', { queue: 'q' })).toEqual({ queue: 'q', redriven: 1 });
    await log.until(() => log.order('a').length === 5);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
  });

  it('C43 leave their jobs to the others when they are closed', async () => {
    const log = new JobLog();
    const shared = await workers(2, await RedisServer.start(), {
      prepare: (runtime, nth) => log.register(runtime, nth, () => sleep(5)),
    });
    const [one, two] = shared.rigs as [TurnRig, TurnRig];
    await define(one, { ...FIFO, concurrency: 3 });
    await Promise.all(upTo(60).map((n) => enqueue(n % 2 === 0 ? one : two, { g: `g${n % 6}`, n })));
    await log.until(() => log.seen.length >= 10);
    await one.runtime.close();
    await log.until(() => log.seen.length === 60);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    for (const g of upTo(6)) expect(log.order(`g${g}`)).toEqual(upTo(10).map((n) => n * 6 + g));
    expect([log.overlaps, log.seen.length]).toEqual([0, 60]);
  });

  it('C44 run what they find while Redis is away, each job once, and go on with it', async () => {
    const log = new JobLog();
    const redis = await RedisServer.start();
    const shared = await workers(2, redis, { prepare: (runtime, nth) => log.register(runtime, nth) });
    await define(shared.first, { ...FIFO, concurrency: 2 });
    const add = (from: number): Promise<unknown> =>
      Promise.all(upTo(20).map((n) => enqueue(shared.first, { g: `g${n % 4}`, n: from + n })));
    await redis.kill();
    await add(0);
    await log.until(() => log.seen.length === 20);
    await redis.up();
    await add(20);
    await log.until(() => log.seen.length === 40);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    expect([log.seen.length, log.overlaps]).toEqual([40, 0]);
    expect(log.most).toBeLessThanOrEqual(2);
    for (const g of upTo(4)) expect(log.order(`g${g}`)).toEqual(upTo(10).map((n) => n * 4 + g));
  });

  it('keep the order of a group that a process without Redis puts jobs into as well', async () => {
    const log = new JobLog();
    const shared = await workers(2, await RedisServer.start(), {
      prepare: (runtime, nth) => log.register(runtime, nth, () => sleep(1)),
    });
    const client = await TurnRig.open({ dataDir: shared.dataDir, prepare: (runtime) => log.register(runtime, 9, () => sleep(1)) });
    onTestFinished(async () => await client.close(true));
    await define(shared.first, FIFO);
    for (const n of upTo(60)) await enqueue(n % 3 === 0 ? client : shared.first, { g: 'a', n });
    await log.until(() => log.seen.length === 60);
    expect(log.order('a')).toEqual(upTo(60));
    expect(log.overlaps).toBe(0);
  });
});
