import { createContext, runInContext } from 'node:vm';

const context = createContext(Object.create(null) as object);

/** Work that took longer than it may. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

/** How much longer work may last than it may take, while other processes keep it from running. */
const MAX_STRETCH = 32;

/**
 * Runs synchronous work with a limit of time: what a model wrote (a schema with a costly pattern, say) must not hold up the
 * turns of the whole process. Only what the process takes itself counts: where others had the machine meanwhile, `work` is
 * run again with more time, so it may change nothing. Throws `TookTooLong` when the limit is reached, and whatever `work` throws.
 */
export function withinTime<T>(ms: number, work: () => T): T {
  for (let limit = ms; ; limit *= 2) {
    const before = process.cpuUsage();
    try {
      return attempt(limit, work);
    } catch (error) {
      if (!isTimeout(error)) throw error;
      const { user, system } = process.cpuUsage(before);
      if ((user + system) / 1_000 >= ms / 2 || limit >= ms * MAX_STRETCH) throw new TookTooLong(`it took longer than ${ms} ms`);
    }
  }
}

function attempt<T>(ms: number, work: () => T): T {
  Object.assign(context, { work });
  try {
    return runInContext('work()', context, { timeout: ms }) as T;
  } finally {
    Object.assign(context, { work: undefined });
  }
}

const isTimeout = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
