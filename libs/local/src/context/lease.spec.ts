import { afterAll, beforeAll, expect, it } from 'vitest';
import { newDataDir, removeDataDir } from '../../../../test/support/store.js';
import { closeStore, openStore, type Store } from '../runtime/store.js';
import { StateStore } from '../state/index.js';
import { CompactionLease } from './lease.js';

const MINUTE = 60_000;
const dataDir = newDataDir();
const stores: Store[] = [];
let now = 1_000_000;

async function lease(): Promise<CompactionLease> {
  const store = await openStore({ dataDir, durability: 'process', concurrency: () => 1, report: () => undefined });
  stores.push(store);
  return new CompactionLease(new StateStore(store.db, store.writer), store.processes, { now: () => now });
}
let one: CompactionLease;
let two: CompactionLease;
beforeAll(async () => {
  one = await lease();
  two = await lease();
});
afterAll(async () => {
  for (const store of stores) await closeStore(store);
  removeDataDir(dataDir);
});

/** Work that goes on until it is let go. */
function open(): { work: () => Promise<string>; done: () => void } {
  let done: () => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    done = () => resolve('done');
  });
  return { work: () => ended, done };
}

it('is held by one at a time, in this process and in others, and is free afterwards', async () => {
  const slow = open();
  const first = one.with('s', slow.work);
  expect([await one.with('s', slow.work), await two.with('s', slow.work)]).toEqual([null, null]);
  expect(await two.with('other', async () => 'other')).toBe('other');
  slow.done();
  expect(await first).toBe('done');
  expect(await two.with('s', async () => 'two')).toBe('two');
  await expect(one.with('s', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await two.with('s', async () => 'again')).toBe('again');
});

it('ends by itself after five minutes, and with its process', async () => {
  const slow = open();
  const first = one.with('s', slow.work);
  now += 4 * MINUTE;
  await stores[0]?.writer.submit(() => stores[0]?.processes.renew(now, true), 'test'); // a sign of life
  expect(await two.with('s', async () => 'two')).toBeNull();
  now += 2 * MINUTE;
  expect(await two.with('s', async () => 'two')).toBe('two');
  slow.done();
  await first;

  const dying = open();
  const last = one.with('s', dying.work);
  await stores[0]?.writer.submit(() => stores[0]?.processes.leave(), 'test');
  expect(await two.with('s', async () => 'two')).toBe('two');
  dying.done();
  await last;
});
