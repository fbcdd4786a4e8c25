import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { pause } from './pause.js';

const NEVER_MS = 2_000_000;

it('ends after its time and leaves no listener', async () => {
  const { signal } = new AbortController();
  await pause(1, signal);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('ends at once when the signal is aborted, before it or meanwhile', async () => {
  await pause(NEVER_MS, AbortSignal.abort());
  const stop = new AbortController();
  const waiting = pause(NEVER_MS, stop.signal);
  stop.abort();
  await waiting;
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});
