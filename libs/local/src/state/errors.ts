/** Codes of `state::*` errors. */
export type StateCode =
  | 'INVALID_ARGUMENTS'
  | 'VALUE_TOO_LARGE'
  | 'GET_ERROR'
  | 'SET_ERROR'
  | 'DELETE_ERROR'
  | 'UPDATE_ERROR'
  | 'LIST_ERROR'
  | 'LIST_GROUPS_ERROR'
  | 'INVALID_CURSOR'
  | 'ROW_TOO_LARGE'
  | 'SNAPSHOT_CAPACITY';

/** An error of a `state::*` function; its message starts with its code. */
export class StateError extends Error {
  override readonly name = 'StateError';
  constructor(
    readonly code: StateCode,
    /** What is wrong, without the code. */
    readonly detail: string,
    options?: { cause?: unknown },
  ) {
    super(`${code}: ${detail}`, options);
  }
}
