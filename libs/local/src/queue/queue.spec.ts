import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import { BusError } from '#libs/iii';
import { newDataDir, openTestStore, recorder, removeDataDir, type TestStore } from '../../../../test/support/store.js';
import type { DeadMessage } from './queue.controller.js';
import type { SqliteQueue } from './queue.js';
import { QueueModule } from './queue.module.js';

let dataDir: string;
const open: { process: TestStore; queue: SqliteQueue }[] = [];

/** A process with a queue; it runs jobs unless told otherwise, once `prepare` has registered functions. */
async function start(
  run = true,
  prepare: (process: TestStore) => void = () => undefined,
): Promise<{ process: TestStore; queue: SqliteQueue }> {
  const process = await openTestStore([QueueModule], dataDir);
  const queue = process.store.jobs as SqliteQueue;
  process.engine.useQueue(queue);
  prepare(process);
  if (run) await queue.start(process.bus);
  const started = { process, queue };
  open.push(started);
  return started;
}

beforeEach(() => {
  dataDir = newDataDir();
});
afterEach(async () => {
  for (const { process, queue } of open.splice(0)) {
    await queue.stop(50);
    await process.close();
  }
  removeDataDir(dataDir);
});

const enqueue = (
  { process }: { process: TestStore },
  function_id: string,
  payload: JsonValue,
  queue = 'default',
  metadata?: JsonValue,
): Promise<{ messageReceiptId: string }> =>
  process.bus.trigger({ function_id, payload, action: { type: 'enqueue', queue }, ...(metadata === undefined ? {} : { metadata }) });
const define = ({ process }: { process: TestStore }, queue: string, config: object): Promise<{ changed: boolean }> =>
  process.call('queue::define', { queue, config });
const rows = ({ process }: { process: TestStore }): { receipt: string; dead: number; attempts: number; owner: string | null }[] =>
  process.store.db.prepare('SELECT * FROM jobs ORDER BY id').all() as {
    receipt: string;
    dead: number;
    attempts: number;
    owner: string | null;
  }[];

/** A function whose calls wait until they are let go. */
function gated(
  process: TestStore,
  id: string,
): { started: JsonValue[]; most: () => number; go: () => void; until(count: number): Promise<void> } {
  let running = 0;
  let most = 0;
  let open_ = false;
  const held: (() => void)[] = [];
  const seen = recorder(process.bus, id, async () => {
    running += 1;
    most = Math.max(most, running);
    if (!open_) await new Promise<void>((resolve) => held.push(resolve));
    running -= 1;
  });
  return {
    started: seen.got,
    most: () => most,
    until: seen.until,
    go: () => {
      open_ = true;
      for (const release of held.splice(0)) release();
    },
  };
}
/** Waits until a condition of the store holds; a job ends a moment after its function has answered. */
async function eventually(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !holds(); i += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(holds()).toBe(true);
}

describe('an enqueue action', () => {
  it('gives its receipt once the job is stored, and runs it with payload and metadata', async () => {
    const one = await start();
    const metadata: unknown[] = [];
    const gate = gated(one.process, 'job::run');
    one.process.bus.registerFunction({ id: 'job::meta' }, (_, context) => metadata.push(context.metadata));
    const { messageReceiptId } = await enqueue(one, 'job::run', { a: 1 });
    expect(rows(one)).toMatchObject([{ receipt: messageReceiptId, dead: 0, attempts: 0 }]);
    await gate.until(1);
    expect(gate.started).toEqual([{ a: 1 }]);
    gate.go();
    await enqueue(one, 'job::meta', null, 'default', { agent: { session_id: 's' } });
    await eventually(() => rows(one).length === 0);
    expect(metadata).toEqual([{ agent: { session_id: 's' } }]);
    expect(one.queue.load).toEqual({ running: 0, waiting: 0 });
  });

  it('is refused for an unknown queue, and for a payload without its group', async () => {
    const one = await start();
    await expect(enqueue(one, 'job::run', {}, 'nowhere')).rejects.toSatisfy(
      (error) => error instanceof BusError && error.code === 'enqueue_error',
    );
    await define(one, 'grouped', { type: 'fifo', message_group_field: 'session_id' });
    for (const payload of [null, {}, [], { session_id: '' }] as JsonValue[])
      await expect(enqueue(one, 'job::run', payload, 'grouped')).rejects.toThrow(
        'enqueue_error: queue grouped groups its jobs by session_id',
      );
    expect(rows(one)).toEqual([]);
  });
});

describe('order', () => {
  it('is kept within a group, with groups side by side up to the concurrency', async () => {
    const one = await start();
    await define(one, 'turns', { type: 'fifo', message_group_field: 'session_id', concurrency: 3 });
    const active = new Map<string, number>();
    const order = new Map<string, number[]>();
    let [running, most] = [0, 0];
    const done = recorder(one.process.bus, 'job::run', async (payload) => {
      const { session_id, n } = payload as { session_id: string; n: number };
      active.set(session_id, (active.get(session_id) ?? 0) + 1);
      expect(active.get(session_id)).toBe(1);
      order.set(session_id, [...(order.get(session_id) ?? []), n]);
      running += 1;
      most = Math.max(most, running);
      await new Promise(setImmediate);
      running -= 1;
      active.set(session_id, 0);
    });
    await Promise.all(Array.from({ length: 60 }, (_, n) => enqueue(one, 'job::run', { session_id: `s${n % 6}`, n }, 'turns')));
    await done.until(60);
    await eventually(() => rows(one).length === 0);
    expect(most).toBe(3);
    for (const [session, seen] of order) expect(seen).toEqual(Array.from({ length: 10 }, (_, i) => i * 6 + Number(session.slice(1))));
  });

  it('is kept when a job of the group has to be tried again', async () => {
    const one = await start();
    await define(one, 'turns', { type: 'fifo', message_group_field: 'g', backoff_ms: 10 });
    let failures = 2;
    const seen = recorder(one.process.bus, 'job::run', (payload) => {
      if ((payload as { n: number }).n === 1 && failures-- > 0) throw new Error('not yet');
    });
    await Promise.all([1, 2].map((n) => enqueue(one, 'job::run', { g: 'a', n }, 'turns')));
    await enqueue(one, 'job::run', { g: 'b', n: 3 }, 'turns');
    await seen.until(5);
    const ofA = seen.got.filter((job) => (job as { g: string }).g === 'a');
    expect(ofA.map((job) => (job as { n: number }).n)).toEqual([1, 1, 1, 2]);
  });

  it('is kept for a group that two processes put jobs into', async () => {
    const [one, two] = [await start(), await start()];
    await define(one, 'turns', { type: 'fifo', message_group_field: 'g' });
    const got: number[] = [];
    let running = 0;
    for (const { process } of [one, two]) {
      process.bus.registerFunction({ id: 'job::run' }, async (payload) => {
        running += 1;
        expect(running).toBe(1);
        await new Promise(setImmediate);
        running -= 1;
        got.push((payload as { n: number }).n);
      });
    }
    for (let n = 0; n < 30; n += 1) await enqueue(n % 3 === 0 ? one : two, 'job::run', { g: 'a', n }, 'turns');
    await eventually(() => got.length === 30);
    expect(got).toEqual(Array.from({ length: 30 }, (_, n) => n));
  });

  it('lets a standard queue run as many as its concurrency', async () => {
    const one = await start();
    await define(one, 'wide', { type: 'standard', concurrency: 4 });
    const gate = gated(one.process, 'job::run');
    await Promise.all(Array.from({ length: 9 }, (_, n) => enqueue(one, 'job::run', n, 'wide')));
    await gate.until(4);
    expect(one.queue.load).toEqual({ running: 4, waiting: 5 });
    gate.go();
    await gate.until(9);
    expect(gate.most()).toBe(4);
  });
});

describe('a job that fails', () => {
  it('is tried again with growing pauses, then kept as dead with its error', async () => {
    const one = await start();
    await define(one, 'q', { type: 'standard', max_retries: 2, backoff_ms: 20 });
    const times: number[] = [];
    one.process.bus.registerFunction({ id: 'job::fail' }, () => {
      times.push(performance.now());
      throw new Error('broken');
    });
    const { messageReceiptId } = await enqueue(one, 'job::fail', { a: 1 }, 'q');
    await eventually(() => rows(one)[0]?.dead === 1);
    const [first = 0, second = 0, third = 0] = times;
    expect(times).toHaveLength(3);
    expect(second - first).toBeGreaterThanOrEqual(19);
    expect(third - second).toBeGreaterThanOrEqual(39);
    const dead = await one.process.call<DeadMessage[]>('engine::queue::dlq_messages', { topic: 'q' });
    expect(dead).toEqual([
      {
        id: messageReceiptId,
        queue: 'q',
        function_id: 'job::fail',
        payload: { a: 1 },
        error: 'broken',
        attempts: 3,
        created_at: expect.any(Number),
      },
    ]);
  });

  it('C45 can be queued anew or removed once it is dead', async () => {
    const one = await start();
    await define(one, 'q', { type: 'fifo', message_group_field: 'g', max_retries: 0 });
    let broken = true;
    const seen = recorder(one.process.bus, 'job::run', () => {
      if (broken) throw new Error('broken');
    });
    const receipts: string[] = [];
    for (let n = 0; n < 4; n += 1) receipts.push((await enqueue(one, 'job::run', { g: 'a', n }, 'q')).messageReceiptId);
    await eventually(() => rows(one).every((row) => row.dead === 1));
    broken = false;
    const call = (id: string, message_id?: string): Promise<object> =>
      one.process.call(id, { queue: 'q', ...(message_id === undefined ? {} : { message_id }) });
    expect(await call('iii::queue::discard_message', receipts[0])).toEqual({ queue: 'q', message_id: receipts[0], redriven: 1 });
    expect(await call('iii::queue::discard_message', receipts[0])).toMatchObject({ redriven: 0 });
    expect(await call('iii::queue::redrive_message', receipts[2])).toMatchObject({ redriven: 1 });
    await seen.until(5);
    expect(await call('iii::queue::redrive')).toEqual({ queue: 'q', redriven: 2 });
    await seen.until(7);
    expect(seen.got.slice(4)).toEqual([
      { g: 'a', n: 2 },
      { g: 'a', n: 1 },
      { g: 'a', n: 3 },
    ]);
    await eventually(() => rows(one).length === 0);
    await expect(call('iii::queue::redrive_message')).rejects.toThrow('queue/invalid_request: message_id is missing');
  });

  it('counts a function that is not there as a failure', async () => {
    const one = await start();
    await define(one, 'q', { type: 'standard', max_retries: 0 });
    await enqueue(one, 'nobody::here', {}, 'q');
    await eventually(() => rows(one)[0]?.dead === 1);
    expect((await one.process.call<DeadMessage[]>('engine::queue::dlq_messages', { queue: 'q' }))[0]?.error).toMatch(/^function_not_found/);
  });
});

describe('several processes', () => {
  it('take over the jobs of one that died, each once and in order', async () => {
    const one = await start();
    await define(one, 'turns', { type: 'fifo', message_group_field: 'g' });
    const stuck = gated(one.process, 'job::run');
    for (let n = 0; n < 5; n += 1) await enqueue(one, 'job::run', { g: 'a', n }, 'turns');
    await stuck.until(1);
    const two = await start();
    const seen = recorder(two.process.bus, 'job::run');
    await enqueue(two, 'job::run', { g: 'a', n: 5 }, 'turns'); // goes to the process that has the group
    expect(new Set(rows(two).map((row) => row.owner)).size).toBe(1);
    expect(seen.got).toEqual([]);
    const { pid } = spawnSync('true');
    one.process.store.db.prepare('UPDATE processes SET pid = ? WHERE owner = ?').run(pid, one.process.store.processes.owner);
    await seen.until(6);
    expect(seen.got).toEqual([0, 1, 2, 3, 4, 5].map((n) => ({ g: 'a', n })));
    await eventually(() => rows(two).length === 0);
    stuck.go();
  });

  it('C43 run what one has stored that runs none itself, and what one has handed back', async () => {
    const client = await start(false);
    await define(client, 'q', { type: 'standard', concurrency: 1 });
    for (let n = 0; n < 3; n += 1) await enqueue(client, 'job::run', n, 'q');
    expect(rows(client).map((row) => row.owner)).toEqual([null, null, null]);
    let gate: ReturnType<typeof gated> | undefined;
    const one = await start(true, (process) => (gate = gated(process, 'job::run')));
    await gate?.until(1);
    const stopped = one.queue.stop(5_000);
    gate?.go();
    await stopped;
    expect(gate?.started).toEqual([0]);
    expect(rows(one).map((row) => row.owner)).toEqual([null, null]);
    let seen: ReturnType<typeof recorder> | undefined;
    await start(true, (process) => (seen = recorder(process.bus, 'job::run')));
    await seen?.until(2);
    expect(seen?.got).toEqual([1, 2]);
  });
});

describe('definitions', () => {
  it('are kept, and tell whether they changed', async () => {
    const one = await start();
    const config = { type: 'fifo', message_group_field: 'session_id', concurrency: 2 };
    expect(await define(one, 'turns', config)).toEqual({ queue: 'turns', changed: true });
    expect(await define(one, 'turns', config)).toEqual({ queue: 'turns', changed: false });
    expect(await define(one, 'turns', { ...config, concurrency: 3 })).toMatchObject({ changed: true });
    const two = await start();
    await expect(enqueue(two, 'x::y', {}, 'turns')).rejects.toThrow('enqueue_error: queue turns groups');
    await expect(define(one, 'turns', { type: 'fifo' })).rejects.toThrow('queue/invalid_request: config.message_group_field');
    await expect(define(one, 'turns', { type: 'lifo' })).rejects.toThrow('queue/invalid_request: config.type');
  });
});

it('takes thousands of jobs at once', async () => {
  const one = await start();
  await define(one, 'turns', { type: 'fifo', message_group_field: 'g', concurrency: 16 });
  const seen = recorder(one.process.bus, 'job::run');
  await Promise.all(Array.from({ length: 3_000 }, (_, n) => enqueue(one, 'job::run', { g: n % 2 === 0 ? 0 : n % 100, n }, 'turns')));
  await seen.until(3_000);
  const last = new Map<number, number>();
  for (const { g, n } of seen.got as { g: number; n: number }[]) {
    expect(n).toBeGreaterThan(last.get(g) ?? -1);
    last.set(g, n);
  }
  await eventually(() => rows(one).length === 0);
});
