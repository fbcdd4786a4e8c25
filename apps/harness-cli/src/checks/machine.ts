import { mkdtemp, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '#libs/contracts';
import { folderFault, nearestExisting } from '../input/data-dir.js';
import { bytes, duration } from '../render/format.js';
import { type Check, fail, ok, warn } from './check.js';

/** Least version of Node. */
const NODE = [20, 19] as const;
/** Free bytes below which it fails, or warns. */
const DISK_FAIL = 50_000_000;
const DISK_WARN = 1_000_000_000;
/** Commits of the write test, and the time of one from which a disk counts as slow, in ms. */
const COMMITS = 20;
const SLOW_MS = 25;

/** Is this Node new enough? */
export function checkNode(version = process.versions.node): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > NODE[0] || (major === NODE[0] && minor >= NODE[1])) return ok('node', version);
  return fail('node', `${version} is too old`, `Install Node ${NODE.join('.')} or newer.`);
}

/** Is the data folder there, a folder, ours to write and closed to others? */
export async function checkDataDir(path: string, source: string): Promise<Check> {
  const said = `${path} (${source === 'default' ? 'the default' : `from ${source}`})`;
  const fault = await folderFault(path);
  if (fault !== null)
    return fail(
      'data folder',
      `${said}: ${fault}`,
      'Choose another folder with --data-dir or HARNESS_DATA_DIR, or change its permissions.',
    );
  if ((await nearestExisting(path)) !== path) return ok('data folder', `${said}, is made at first use`);
  const mode = (await stat(path)).mode & 0o777;
  if ((mode & 0o077) !== 0)
    return warn('data folder', `${said}, mode ${mode.toString(8)}: other users may look into it`, `chmod 700 ${path}`);
  return ok('data folder', `${said}, mode ${mode.toString(8)}`);
}

/** How much space is left where the data is? */
export async function checkDisk(path: string): Promise<Check> {
  try {
    const { bavail, bsize } = await statfs(await nearestExisting(path));
    const free = bavail * bsize;
    if (free < DISK_FAIL) return fail('disk', `${bytes(free)} free`, 'Free some space: sends are refused when the disk is full.');
    if (free < DISK_WARN) return warn('disk', `${bytes(free)} free`, 'Free some space before it runs out.');
    return ok('disk', `${bytes(free)} free`);
  } catch (error) {
    return fail('disk', errorMessage(error), 'Check that the disk is mounted and readable.');
  }
}

/** Does SQLite open, write and sync there, and how fast? Leaves nothing behind. */
export async function checkSqlite(path: string): Promise<Check> {
  let folder: string | null = null;
  try {
    const { default: Database } = await import('better-sqlite3');
    folder = await mkdtemp(join(await nearestExisting(path), '.harness-doctor-'));
    const db = new Database(join(folder, 'test.db'));
    try {
      const mode = db.pragma('journal_mode = WAL', { simple: true });
      if (mode !== 'wal') return fail('sqlite', `journal mode is ${String(mode)}, not WAL`, 'Put the data folder on a local file system.');
      db.pragma('synchronous = FULL');
      db.exec('CREATE TABLE t (n INTEGER)');
      const insert = db.prepare('INSERT INTO t VALUES (?)');
      const times = Array.from({ length: COMMITS }, (_, n) => {
        const begun = performance.now();
        insert.run(n);
        return performance.now() - begun;
      }).sort((a, b) => a - b);
      const median = times[COMMITS / 2] ?? 0;
      const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
      const detail = `${version}, WAL, a durable commit takes ${median < 10 ? `${median.toFixed(2)} ms` : duration(median)}`;
      if (median > SLOW_MS)
        return warn(
          'sqlite',
          detail,
          'This disk syncs slowly; a turn with calls waits for four commits. `durability: process` in config/harness.yaml trades safety in a power cut for speed.',
        );
      return ok('sqlite', detail);
    } finally {
      db.close();
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EACCES' || code === 'EROFS' || code === 'ENOTDIR')
      return fail('sqlite', 'not tried: the data folder may not be written', 'See above.');
    return fail(
      'sqlite',
      errorMessage(error),
      'If the module does not load, install again with a C++ compiler at hand: npm rebuild better-sqlite3.',
    );
  } finally {
    if (folder !== null) await rm(folder, { recursive: true, force: true });
  }
}
