import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { TurnRig } from '../support/turn-rig.js';
import { Workers } from './workers.js';

interface Job {
  g: string;
  n: number;
}

/** What a function that jobs call saw of them, in all workers. */
class Journal {
  readonly seen: { worker: number; job: Job }[] = [];
  running = 0;
  most = 0;
  /** Runs of jobs of one group beside each other. */
  overlaps = 0;
  private readonly groups = new Set<string>();
  private readonly listeners = new Set<() => void>();

  /** Registers `job::run`; `work` is what it takes. */
  register({ bus }: EmbeddedRuntime, worker: number, work: (job: Job) => Promise<void> | void = () => undefined): void {
    bus.registerFunction({ id: 'job::run' }, async (payload) => {
      const job = payload as unknown as Job;
      if (this.groups.has(job.g)) this.overlaps += 1;
      this.groups.add(job.g);
      this.running += 1;
      this.most = Math.max(this.most, this.running);
      this.seen.push({ worker, job });
      for (const listener of this.listeners) listener();
      try {
        await work(job);
      } finally {
        this.running -= 1;
        this.groups.delete(job.g);
      }
    });
  }

  async until(holds: () => boolean): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve) => {
      this.listeners.add(() => {
        if (holds()) resolve();
      });
    });
  }

  /** Numbers of the jobs of a group, as they ran. */
  order(group: string): number[] {
    return this.seen.flatMap(({ job }) => (job.g === group ? [job.n] : []));
  }
}

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

const enqueue = (rig: TurnRig, payload: Job, queue = 'q'): Promise<{ messageReceiptId: string }> =>
  rig.runtime.bus.trigger({ function_id: 'job::run', payload: payload as unknown as JsonValue, action: { type: 'enqueue', queue } });
const define = (rig: TurnRig, config: object): Promise<unknown> => rig.call('queue::define', { queue: 'q', config });
const FIFO = { type: 'fifo', message_group_field: 'g' };
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function workers(...options: Parameters<typeof Workers.open>): Promise<Workers> {
  const opened = await Workers.open(...options);
  onTestFinished(async () => await opened.close());
  return opened;
}

describe.skipIf(!hasRedis)('workers that share their named queues by Redis (skipped where there is no redis-server)', () => {
  it('run each job once, in order within its group, and all together no more at once than the queue says', async () => {
    const journal = new Journal();
    const shared = await workers(3, await RedisServer.start(), {
      prepare: (runtime, nth) => journal.register(runtime, nth, () => sleep(2)),
    });
    await define(shared.first, { ...FIFO, concurrency: 4 });
    await Promise.all(upTo(90).map((n) => enqueue(shared.rigs[n % 3] ?? shared.first, { g: `g${n % 9}`, n })));
    await journal.until(() => journal.seen.length === 90);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    expect(journal.seen).toHaveLength(90);
    expect([journal.most, journal.overlaps]).toEqual([4, 0]);
    expect(new Set(journal.seen.map(({ worker }) => worker)).size).toBe(3);
    for (const rig of shared.rigs) expect(rig.reports).toEqual([]);
  });

  it('keep the order of a long group', async () => {
    const journal = new Journal();
    const shared = await workers(2, await RedisServer.start(), { prepare: (runtime, nth) => journal.register(runtime, nth) });
    await define(shared.first, FIFO);
    await Promise.all(upTo(100).map((n) => enqueue(shared.first, { g: 'a', n })));
    await journal.until(() => journal.seen.length === 100);
    expect(journal.order('a')).toEqual(upTo(100));
    expect(journal.overlaps).toBe(0);
  });

  it('try a job that fails again after growing pauses, before those behind it, and keep it as dead in the end', async () => {
    const journal = new Journal();
    const times: number[] = [];
    let broken = true;
    const shared = await workers(2, await RedisServer.start(), {
      prepare: (runtime, nth) =>
        journal.register(runtime, nth, ({ n }) => {
          if (n !== 0 || !broken) return;
          times.push(performance.now());
          throw new Error('broken');
        }),
    });
    const [one, two] = shared.rigs as [TurnRig, TurnRig];
    await define(one, { ...FIFO, max_retries: 2, backoff_ms: 50 });
    const { messageReceiptId } = await enqueue(one, { g: 'a', n: 0 });
    await enqueue(one, { g: 'a', n: 1 });
    await journal.until(() => journal.order('a').includes(1));
    expect(journal.order('a')).toEqual([0, 0, 0, 1]);
    const [first = 0, second = 0, third = 0] = times;
    expect([second - first >= 49, third - second >= 99]).toEqual([true, true]);
    const dead = await two.call<object[]>('engine::queue::dlq_messages', { queue: 'q' });
    expect(dead).toMatchObject([{ id: messageReceiptId, attempts: 3, error: 'broken' }]);
    broken = false;
    expect(await two.call('iii::queue::redrive', { queue: 'q' })).toEqual({ queue: 'q', redriven: 1 });
    await journal.until(() => journal.order('a').length === 5);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
  });

  it('take over the jobs of one that is gone, in order', async () => {
    const journal = new Journal();
    const stuck: (() => void)[] = [];
    const shared = await workers(1, await RedisServer.start(), {
      prepare: (runtime, nth) => journal.register(runtime, nth, () => new Promise((resolve) => stuck.push(resolve))),
    });
    await define(shared.first, FIFO);
    for (const n of upTo(4)) await enqueue(shared.first, { g: 'a', n });
    await journal.until(() => journal.seen.length === 1);
    const after = new Journal();
    await shared.add({ prepare: (runtime, nth) => after.register(runtime, nth) });
    const { pid } = spawnSync('true');
    onDisk(shared.dataDir, (db) => {
      const owner = db.prepare('SELECT owner FROM jobs WHERE owner IS NOT NULL').pluck().get();
      db.prepare('UPDATE processes SET pid = ? WHERE owner = ?').run(pid, owner);
    });
    await after.until(() => after.seen.length === 4);
    expect(after.order('a')).toEqual(upTo(4));
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    for (const end of stuck) end(); // what comes of it late changes nothing
  });

  it('C43 leave their jobs to the others when they are closed', async () => {
    const journal = new Journal();
    const shared = await workers(2, await RedisServer.start(), {
      prepare: (runtime, nth) => journal.register(runtime, nth, () => sleep(5)),
    });
    const [one, two] = shared.rigs as [TurnRig, TurnRig];
    await define(one, { ...FIFO, concurrency: 3 });
    await Promise.all(upTo(60).map((n) => enqueue(n % 2 === 0 ? one : two, { g: `g${n % 6}`, n })));
    await journal.until(() => journal.seen.length >= 10);
    await one.runtime.close();
    await journal.until(() => journal.seen.length === 60);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    for (const g of upTo(6)) expect(journal.order(`g${g}`)).toEqual(upTo(10).map((n) => n * 6 + g));
    expect([journal.overlaps, journal.seen.length]).toEqual([0, 60]);
  });

  it('C44 run what they find while Redis is away, each job once, and go on with it', async () => {
    const journal = new Journal();
    const redis = await RedisServer.start();
    const shared = await workers(2, redis, { prepare: (runtime, nth) => journal.register(runtime, nth) });
    await define(shared.first, { ...FIFO, concurrency: 2 });
    const add = (from: number): Promise<unknown> =>
      Promise.all(upTo(20).map((n) => enqueue(shared.first, { g: `g${n % 4}`, n: from + n })));
    await redis.kill();
    await add(0);
    await journal.until(() => journal.seen.length === 20);
    await redis.up();
    await add(20);
    await journal.until(() => journal.seen.length === 40);
    await untilRows(shared.dataDir, (rows) => rows.length === 0);
    expect([journal.seen.length, journal.overlaps]).toEqual([40, 0]);
    expect(journal.most).toBeLessThanOrEqual(2);
    for (const g of upTo(4)) expect(journal.order(`g${g}`)).toEqual(upTo(10).map((n) => n * 4 + g));
  });

  it('keep the order of a group that a process without Redis puts jobs into as well', async () => {
    const journal = new Journal();
    const shared = await workers(2, await RedisServer.start(), {
      prepare: (runtime, nth) => journal.register(runtime, nth, () => sleep(1)),
    });
    const client = await TurnRig.open({ dataDir: shared.dataDir, prepare: (runtime) => journal.register(runtime, 9, () => sleep(1)) });
    onTestFinished(async () => await client.close(true));
    await define(shared.first, FIFO);
    for (const n of upTo(60)) await enqueue(n % 3 === 0 ? client : shared.first, { g: 'a', n });
    await journal.until(() => journal.seen.length === 60);
    expect(journal.order('a')).toEqual(upTo(60));
    expect(journal.overlaps).toBe(0);
  });
});
