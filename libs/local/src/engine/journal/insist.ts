import { setTimeout as delay } from 'node:timers/promises';
import { errorCode, errorMessage, HarnessError } from '#libs/contracts';
import { type Bus, BusError } from '#libs/iii';

/** First and longest pause before a call is tried again, in ms. */
const PAUSE_MS = 100;
const PAUSE_CAP_MS = 2_000;
/** Errors after which the same call may succeed: the engine or the worker is on its way down or up. */
const PASSING: ReadonlySet<unknown> = new Set([
  'timeout',
  'invocation_stopped',
  'connection_lost',
  'function_not_found',
  'session/storage',
]);

/**
 * Runs `call` until it succeeds or fails for good: what cannot be stored waits until it can. Throws `harness/storage` when `signal` ends the
 * waiting, and what a call threw that is no use to repeat.
 */
export async function insist<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      const code = error instanceof BusError ? error.code : errorCode(error);
      if (!PASSING.has(code)) throw error;
      if (signal.aborted)
        throw new HarnessError('harness/storage', `the worker stops before it could store: ${errorMessage(error)}`, { cause: error });
    }
    await delay(Math.min(PAUSE_MS * 2 ** tries, PAUSE_CAP_MS), undefined, { signal }).catch(() => undefined);
  }
}

/** A bus for calls that may be repeated: each is asked until it is answered. Throws as `insist`. */
export const insistent = (bus: Pick<Bus, 'trigger'>, signal: AbortSignal): Pick<Bus, 'trigger'> => ({
  trigger: (request) => insist(() => bus.trigger(request), signal),
});
