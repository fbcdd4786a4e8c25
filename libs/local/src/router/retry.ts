import { type Failure, isRetryable } from './errors.js';
import type { RouterLimits } from './settings.js';

/** How long to wait before the next try, or why there will be none that is worth saying. */
export type Pause = { ms: number } | { refusal: string; retryable: boolean };

/** The part of a `Retry-After` that is added by chance, so that those who were refused together do not come back together. */
const SPREAD = 0.1;

/**
 * The pause before another try of a chat that failed before anything was passed on: what the provider asks for, with a little
 * chance on top, else a random part of a doubling backoff. Null when nothing is to be repeated; a refusal says why not, and whether a later request may succeed. `tries` counts those made,
 * `leftMs` is the time left to the chat, `random` is from 0 up to 1.
 */
export function pauseBefore(tries: number, failure: Failure, limits: RouterLimits, leftMs: number, random: number): Pause | null {
  if (!isRetryable(failure.kind)) return null;
  const wanted = failure.retryAfterMs;
  if (wanted !== undefined && wanted > limits.retry_after_cap_ms) {
    return {
      refusal: `${failure.message} (the provider asks to wait ${inWords(wanted)}; the router waits at most ${inWords(limits.retry_after_cap_ms)})`,
      retryable: false,
    };
  }
  if (tries > limits.retry_max) return tries === 1 ? null : { refusal: `${failure.message} (after ${tries} tries)`, retryable: true };
  const backoff = Math.min(limits.retry_cap_ms, limits.retry_base_ms * 2 ** (tries - 1));
  const ms = Math.round(wanted === undefined ? random * backoff : wanted * (1 + SPREAD * random));
  if (ms >= leftMs) return { refusal: `${failure.message} (no time is left for another try)`, retryable: true };
  return { ms };
}

/** A time in ms as a person says it, e.g. `3 h`, `1 min 30 s`, `250 ms`. */
export function inWords(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  const parts = [
    { n: Math.floor(seconds / 3_600), unit: 'h' },
    { n: Math.floor((seconds % 3_600) / 60), unit: 'min' },
    { n: seconds % 60, unit: 's' },
  ];
  return parts
    .filter(({ n }) => n > 0)
    .map(({ n, unit }) => `${n} ${unit}`)
    .join(' ');
}
