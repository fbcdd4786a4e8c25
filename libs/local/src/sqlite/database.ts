import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { HarnessError } from '#libs/contracts';
import { makeFolder } from './folder.js';
import { migrations } from './migrations/index.js';
import { isBusy, STORE_CODES, storageError } from './storage-error.js';

export type SqliteConnection = Sqlite.Database;
export type SqliteStatement = Sqlite.Statement<unknown[]>;

/** Name of the database file in a data folder. */
export const DATABASE_FILE = 'harness.db';
/** How long one statement waits for another process's write, in ms. Longer waits are retried without blocking. */
const BUSY_TIMEOUT_MS = 2_000;
const OPEN_TRIES = 50;
/** The WAL file is cut back to this size after a checkpoint, in bytes. */
const WAL_LIMIT = 4 * 1024 * 1024;

export interface OpenDatabaseOptions {
  dataDir: string;
  /** `power`: each commit is on disk before it is acknowledged. `process`: it survives the process, not a power cut. */
  durability?: 'power' | 'process';
  /** Fail instead of making a new database. */
  mustExist?: boolean;
}

/**
 * Opens the database of a data folder, making both where they are missing, and brings its schema up to date.
 * Throws `harness/store_unwritable`, `harness/store_corrupt`, `harness/store_newer` or `harness/storage`.
 */
export async function openDatabase(options: OpenDatabaseOptions): Promise<SqliteConnection> {
  const path = join(options.dataDir, DATABASE_FILE);
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (options.mustExist !== true) makeFolder(options.dataDir);
      return openOnce(path, options);
    } catch (error) {
      if (!isBusy(error) || attempt >= OPEN_TRIES) throw storageError(error, path);
      await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80));
    }
  }
}

function openOnce(path: string, options: OpenDatabaseOptions): SqliteConnection {
  const db = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS, fileMustExist: options.mustExist === true });
  try {
    refuseNewer(db, path);
    db.pragma('journal_mode = WAL');
    db.pragma(`synchronous = ${options.durability === 'process' ? 'NORMAL' : 'FULL'}`);
    db.pragma(`journal_size_limit = ${WAL_LIMIT}`);
    db.pragma('cache_size = -16000');
    db.pragma('temp_store = MEMORY');
    migrate(db, path);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Applies missing migrations; several processes may do so at once. */
function migrate(db: SqliteConnection, path: string): void {
  const versionNow = (): number => db.pragma('user_version', { simple: true }) as number;
  const target = migrations.length;
  if (versionNow() < target) {
    db.transaction(() => {
      for (let version = versionNow(); version < target; version += 1) {
        db.exec(migrations[version] as string);
        db.pragma(`user_version = ${version + 1}`);
      }
    }).immediate();
  }
  refuseNewer(db, path);
}

/** A database of a newer program is left as it is. */
function refuseNewer(db: SqliteConnection, path: string): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  const known = migrations.length;
  if (version <= known) return;
  const detail = `${path} was written by a newer version of harness (schema ${version}, this one knows ${known}). Update harness, or use another data folder.`;
  throw new HarnessError(STORE_CODES.newer, detail);
}
