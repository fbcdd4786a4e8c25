import { createContext, runInContext } from 'node:vm';

const context = createContext(Object.create(null) as object);

/** Work that took longer than it may. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';
}

/**
 * Runs synchronous work with a limit of time: what a model wrote (a schema with a costly pattern, say) must not hold up the
 * turns of the whole process. Throws `TookTooLong` when the limit is reached, and whatever `work` throws.
 */
export function withinTime<T>(ms: number, work: () => T): T {
  Object.assign(context, { work });
  try {
    return runInContext('work()', context, { timeout: ms }) as T;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw new TookTooLong(`it took longer than ${ms} ms`);
    throw error;
  } finally {
    Object.assign(context, { work: undefined });
  }
}
