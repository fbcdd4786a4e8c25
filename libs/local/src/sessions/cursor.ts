import { HarnessError } from '#libs/contracts';

/** Rows of a page when the caller asks for no number, and at most. */
export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 500;

/** The size of a page for what a caller asked. */
export const pageSize = (limit: number | null | undefined): number => Math.min(Math.max(limit ?? DEFAULT_LIMIT, 1), MAX_LIMIT);

/** The error for a cursor, or an entry that serves as one, that does not fit. */
export const invalidCursor = (detail: string): HarnessError => new HarnessError('session/invalid_cursor', detail);

/** Makes an opaque cursor of a list's name and numbers. */
export const encodeCursor = (list: string, numbers: readonly number[]): string =>
  Buffer.from([list, ...numbers].join(':')).toString('base64url');

/** Reads a cursor of `list` with `count` numbers; throws `session/invalid_cursor` for anything else. */
export function decodeCursor(list: string, count: number, cursor: string): number[] {
  const [name, ...rest] = Buffer.from(cursor, 'base64url').toString().split(':');
  const numbers = rest.map(Number);
  if (name !== list || numbers.length !== count || !rest.every((part) => /^\d+$/.test(part))) {
    throw invalidCursor('cursor must be the next_cursor of the same list, with the same order');
  }
  return numbers;
}
