import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode, errorMessage, HarnessError, withoutPassword } from '#libs/contracts';
import { BusError, connectSdk, type SdkBus } from '#libs/iii';
import type { OpenRuntimeOptions } from '../runtime/api.js';

/** How often something that is waited for is looked for, in ms. */
export const LOOK_MS = 500;

/** Errors of an engine that is on its way down or up. */
const PASSING: ReadonlySet<string> = new Set(['timeout', 'invocation_stopped', 'connection_lost', 'function_not_found']);

export type Log = NonNullable<OpenRuntimeOptions['log']>;

/** What a worker waits for at its start, and how. */
export interface Patience {
  log: Log;
  /** Ends the waiting. */
  signal?: AbortSignal | undefined;
}

/**
 * Asks `find` again and again until it has nothing missing any more, and says what is waited for whenever that changes. Throws
 * `harness/stopped` when it was told to end before, and whatever `find` throws.
 */
export async function waitUntil(find: () => Promise<string | null>, { log, signal }: Patience): Promise<void> {
  let said: string | null = null;
  for (;;) {
    const missing = await find().catch((error: unknown) => {
      if (error instanceof BusError && PASSING.has(error.code)) return `the engine to answer (${error.message})`;
      throw error;
    });
    if (missing === null) {
      if (said !== null) log('info', 'everything that was waited for is there', {});
      return;
    }
    if (missing !== said) log('info', `waiting for ${missing}`, {});
    said = missing;
    await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    if (signal?.aborted === true) throw new HarnessError('harness/stopped', `it was told to stop while it waited for ${missing}`);
  }
}

/** Connects to an iii engine under a name that no other process has, however long the engine takes to be there. */
export async function reachEngine(url: string, token: string | undefined, patience: Patience): Promise<SdkBus> {
  let bus: SdkBus | undefined;
  await waitUntil(async () => {
    try {
      bus = await connectSdk(url, {
        name: `harness:${hostname()}:${process.pid}`,
        ...(token === undefined ? {} : { token }),
        log: (level, message) => patience.log('debug', `${level}: ${message}`, {}),
      });
      return null;
    } catch (error) {
      if (errorCode(error) !== 'harness/unreachable') throw error;
      return `the engine at ${withoutPassword(url)} (${errorMessage(error)})`;
    }
  }, patience);
  return bus as SdkBus;
}
