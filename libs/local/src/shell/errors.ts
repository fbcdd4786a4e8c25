import { errorMessage } from '#libs/contracts';
import { errnoOf, PathError, type PathReason } from '../confine/index.js';

/** S210 invalid, S211 missing, S212 wrong type, S215 outside or denied, S216 internal, S300 no sandbox here. */
export type ShellCode = 'S210' | 'S211' | 'S212' | 'S215' | 'S216' | 'S300';

/** An error of a `shell::*` function; its message starts with its code. */
export class ShellError extends Error {
  override readonly name = 'ShellError';
  constructor(
    readonly code: ShellCode,
    /** What is wrong, without the code. */
    readonly detail: string,
    options?: { cause?: unknown },
  ) {
    super(`${code}: ${detail}`, options);
  }
}

const PATH_CODES: { [reason in PathReason]: ShellCode } = {
  off: 'S215',
  invalid: 'S210',
  outside: 'S215',
  missing: 'S211',
  denied: 'S215',
  type: 'S212',
};

/** Says what went wrong before or while a command was started. */
export function shellError(error: unknown, command: string): ShellError {
  if (error instanceof ShellError) return error;
  if (error instanceof PathError) return new ShellError(PATH_CODES[error.reason], `cwd: ${error.message}`, { cause: error });
  switch (errnoOf(error)) {
    case 'ENOENT':
      return new ShellError('S211', `there is no command ${command}`, { cause: error });
    case 'EACCES':
      return new ShellError('S215', `${command} may not be run`, { cause: error });
    case 'E2BIG':
    case 'ERR_INVALID_ARG_VALUE':
    case 'ERR_INVALID_ARG_TYPE':
      return new ShellError('S210', errorMessage(error), { cause: error });
    default:
      return new ShellError('S216', errorMessage(error), { cause: error });
  }
}
