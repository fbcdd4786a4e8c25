import { errorMessage, HarnessError } from '#libs/contracts';

/** Codes of a store that cannot be used. */
export const STORE_CODES = {
  storage: 'harness/storage',
  newer: 'harness/store_newer',
  corrupt: 'harness/store_corrupt',
  unwritable: 'harness/store_unwritable',
} as const;

const sqliteCode = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && typeof (error as { code?: unknown }).code === 'string'
    ? (error as { code: string }).code
    : undefined;

/** True for errors that pass when another process has finished its write. */
export const isBusy = (error: unknown): boolean => /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error) ?? '');

/** Puts an error of SQLite or the file system into words that say what to do; other errors come back as they are. */
export function storageError(error: unknown, path: string): unknown {
  const code = sqliteCode(error);
  if (code === undefined || error instanceof HarnessError) return error;
  const make = (kind: keyof typeof STORE_CODES, detail: string): HarnessError =>
    new HarnessError(STORE_CODES[kind], detail, { cause: error, retry: kind === 'storage' ? 'retry' : 'terminal' });
  // Opening a database makes a file for shared memory, which says that there is no room for it in a way of its own.
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'SQLITE_IOERR_SHMSIZE') {
    return make('storage', `the disk that holds ${path} is full; nothing was written. Free some space and try again.`);
  }
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return make(
      'corrupt',
      `${path} is not a usable database (${errorMessage(error)}). Restore it from a backup, or move it away to start with an empty one.`,
    );
  }
  if (
    code.startsWith('SQLITE_READONLY') ||
    code.startsWith('SQLITE_CANTOPEN') ||
    code === 'EACCES' ||
    code === 'EPERM' ||
    code === 'EROFS' ||
    code === 'ENOTDIR' ||
    code === 'ENOENT' ||
    code === 'EEXIST'
  ) {
    return make(
      'unwritable',
      `${path} cannot be written (${code}). Give this user write permission, or choose another folder with --data-dir.`,
    );
  }
  if (isBusy(error)) return make('storage', `${path} stayed locked by another process. Try again.`);
  if (code.startsWith('SQLITE_IOERR')) return make('storage', `reading or writing ${path} failed (${code}).`);
  return error;
}
