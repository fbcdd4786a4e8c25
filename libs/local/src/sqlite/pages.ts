import { statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { errorMessage } from '#libs/contracts';
import { DATABASE_FILE } from './database.js';

/** Above this size the pages are not read, since that takes minutes. */
const MAX_BYTES = 2 * 1024 ** 3;
/** Faults that are looked for before the reading ends. */
const MAX_FAULTS = 5;

/** What reading every page of a database came to; `read` is false when it is too large for that. */
export interface PageReport {
  read: boolean;
  bytes: number;
  /** What is damaged, in SQLite's words; empty when nothing is. */
  faults: string[];
}

/** Reads every page of a data folder's database, as another process sees it, and changes nothing. Throws when there is no such file. */
export function checkPages(dataDir: string, maxBytes = MAX_BYTES): PageReport {
  const path = join(dataDir, DATABASE_FILE);
  const bytes = statSync(path).size;
  if (bytes > maxBytes) return { read: false, bytes, faults: [] };
  let db: Sqlite.Database | undefined;
  try {
    db = new Sqlite(path, { readonly: true, fileMustExist: true, timeout: 2_000 });
    const said = db.prepare(`PRAGMA quick_check(${MAX_FAULTS})`).pluck().all() as string[];
    return { read: true, bytes, faults: said.filter((line) => line !== 'ok').flatMap((line) => line.split('\n')) };
  } catch (error) {
    return { read: true, bytes, faults: [errorMessage(error)] };
  } finally {
    db?.close();
  }
}
