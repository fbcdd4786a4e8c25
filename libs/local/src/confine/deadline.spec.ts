import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { deadline } from './deadline.js';

it('a deadline fires whatever is collected meanwhile', async () => {
  const { signal } = deadline(new AbortController().signal, 60);
  const litter: unknown[] = [];
  for (let round = 0; round < 20 && !signal.aborted; round += 1) {
    litter.length = 0;
    for (let i = 0; i < 20_000; i += 1) litter.push({ i });
    await pause(5);
  }
  await expect.poll(() => signal.aborted).toBe(true);
});

it('follows its caller, and is over when its work is', async () => {
  const caller = new AbortController();
  const followed = deadline(caller.signal, 60_000);
  caller.abort(new Error('enough'));
  expect([followed.signal.aborted, followed.passed]).toEqual([true, false]);
  followed.end();
  const ended = deadline(new AbortController().signal, 5);
  ended.end();
  await pause(20);
  expect(ended.signal.aborted).toBe(false);
});
