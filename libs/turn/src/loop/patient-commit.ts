import { isDeepStrictEqual } from 'node:util';
import { errorCode, errorMessage, HARNESS_CODES, HarnessError, pause } from '#libs/contracts';
import type { Decision } from '../machine/decision.js';
import type { CommitResult, Journal } from '../ports/journal.js';

/** The first pause before a commit is tried again, in ms; it doubles up to the cap. */
const PAUSE_MS = 250;
const PAUSE_CAP_MS = 5_000;

/**
 * Commits a decision of a step. While the store cannot write, a full disk say, the same commit is tried again: what a model has
 * said and a function has answered is in memory only, and neither is to be asked for twice. `tell` gets words for a person, once
 * when it begins to wait and once when that is over. Gives up with what the store threw when `signal` is aborted.
 */
export async function commitPatiently(
  journal: Journal,
  { record, writes }: Decision,
  point: string,
  signal: AbortSignal,
  tell: (text: string) => void,
): Promise<CommitResult> {
  let failure: unknown;
  for (let tries = 0; ; tries += 1) {
    try {
      const result = await journal.commit(writes, point);
      if (result === 'conflict' && tries > 0 && (await isStored(journal, record))) throw failure;
      if (tries > 0) tell('It is stored now; the turn goes on.');
      return result;
    } catch (error) {
      if (errorCode(error) !== HARNESS_CODES.storage || signal.aborted || error === failure) throw error;
      failure = error;
      if (tries === 0)
        tell(`The turn waits, because it cannot be stored: ${error instanceof HarnessError ? error.detail : errorMessage(error)}`);
    }
    await pause(Math.min(PAUSE_MS * 2 ** tries, PAUSE_CAP_MS), signal, true);
  }
}

/** True when a commit that was said to have failed is on disk all the same. */
export const isStored = async (journal: Journal, record: Decision['record']): Promise<boolean> =>
  isDeepStrictEqual(await journal.load(record.session_id), JSON.parse(JSON.stringify(record)));
