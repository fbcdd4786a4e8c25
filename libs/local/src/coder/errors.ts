import { errorMessage } from '#libs/contracts';
import { errnoOf, IsolateError, PathError, pathError } from '../confine/index.js';

/** C210 bad input, C211 missing or denied, C213 exists or over budget, C216 the disk failed, C221 stale revision. */
export type CoderCode = 'C210' | 'C211' | 'C213' | 'C216' | 'C221';

/** An error of a `coder::*` function; its message starts with its code. */
export class CoderError extends Error {
  override readonly name = 'CoderError';
  constructor(
    readonly code: CoderCode,
    /** What is wrong and what to do about it, without the code. */
    readonly detail: string,
    options?: { cause?: unknown },
  ) {
    super(`${code}: ${detail}`, options);
  }
}

/** An error as it appears beside one file of a batch. */
export interface EntryError {
  code: CoderCode;
  message: string;
}

/** Says anything that went wrong with `path` as a `CoderError`. */
export function coderError(thrown: unknown, path: string): CoderError {
  if (thrown instanceof CoderError) return thrown;
  const error = pathError(thrown, path);
  if (error instanceof PathError) {
    return new CoderError(error.reason === 'invalid' || error.reason === 'type' ? 'C210' : 'C211', error.message, { cause: thrown });
  }
  if (error instanceof IsolateError) return new CoderError('C210', `a pattern could not be applied: ${error.message}`, { cause: thrown });
  switch (errnoOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new CoderError('C213', `no space left to write ${path} (${errnoOf(error)}); the file is unchanged`, { cause: thrown });
    default:
      return new CoderError('C216', `${path}: ${errorMessage(error)}`, { cause: thrown });
  }
}

/** As `coderError`, in the form that stands beside one file of a batch. */
export function entryError(thrown: unknown, path: string): EntryError {
  const { code, detail } = coderError(thrown, path);
  return { code, message: detail };
}
