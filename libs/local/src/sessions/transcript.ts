import type { Entry } from '#libs/contracts';
import type { Transcript } from '#libs/turn';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import type { EntryChange } from './changes.js';
import { LATEST_COMPACTION, WINDOW_PATH } from './path.js';
import type { SessionRepository } from './repository.js';
import { type EntryRow, entryOf } from './rows.js';
import { tailStart, windowOf } from './window.js';

interface Cached {
  sid: number;
  rev: number;
  entries: Entry[];
  indexById: Map<string, number>;
}

/** Sessions whose window is kept in memory, and entries of all of them. */
const MAX_SESSIONS = 256;
const MAX_ENTRIES = 100_000;

/**
 * Reads conversations, with a cache of the windows in use. A cached window follows the changes that this process
 * commits; a change by another process shows in the session's revision, and the window is read again.
 */
export class SqliteTranscript implements Transcript {
  private readonly cache = new Map<string, Cached>();
  private cachedEntries = 0;
  private readonly selectRev: SqliteStatement;
  private readonly selectCompaction: SqliteStatement;
  private readonly selectSeq: SqliteStatement;
  private readonly selectLine: SqliteStatement;
  private readonly selectPath: SqliteStatement;

  constructor(
    db: SqliteConnection,
    private readonly repository: SessionRepository,
  ) {
    this.selectRev = db.prepare('SELECT sid, rev, branched FROM sessions WHERE session_id = ?');
    this.selectCompaction = db.prepare(LATEST_COMPACTION);
    this.selectSeq = db.prepare('SELECT seq FROM entries WHERE sid = ? AND entry_id = ?').pluck();
    this.selectLine = db.prepare('SELECT * FROM entries WHERE sid = ? AND seq >= ? ORDER BY seq');
    this.selectPath = db.prepare(
      `${WINDOW_PATH} SELECT entries.* FROM path JOIN entries ON entries.sid = @sid AND entries.seq = path.seq ORDER BY entries.seq`,
    );
  }

  window(sessionId: string): Promise<readonly Entry[]> {
    return Promise.resolve(this.read(sessionId));
  }

  entry(sessionId: string, entryId: string): Promise<Entry | null> {
    const cached = this.fresh(sessionId);
    const index = cached?.indexById.get(entryId);
    if (cached !== undefined && index !== undefined) return Promise.resolve(cached.entries[index] ?? null);
    return Promise.resolve(this.repository.entry(sessionId, entryId));
  }

  /** Brings cached windows up to date with a commit of this process. */
  apply(changes: readonly EntryChange[]): void {
    for (const change of changes) {
      const cached = this.cache.get(change.session_id);
      if (cached === undefined) continue;
      const before = cached.entries.length;
      if (cached.sid !== change.sid || cached.rev !== change.from || !place(cached, change)) this.forget(change.session_id);
      else {
        cached.rev = change.to;
        this.cachedEntries += cached.entries.length - before;
      }
    }
  }

  /** Drops what is cached of a session. */
  forget(sessionId: string): void {
    const cached = this.cache.get(sessionId);
    if (cached === undefined) return;
    this.cachedEntries -= cached.entries.length;
    this.cache.delete(sessionId);
  }

  private fresh(sessionId: string): Cached | undefined {
    const cached = this.cache.get(sessionId);
    if (cached === undefined) return undefined;
    const row = this.selectRev.get(sessionId) as { sid: number; rev: number } | undefined;
    if (row?.rev === cached.rev && row.sid === cached.sid) return cached;
    this.forget(sessionId);
    return undefined;
  }

  private read(sessionId: string): readonly Entry[] {
    const cached = this.fresh(sessionId);
    if (cached !== undefined) {
      this.cache.delete(sessionId);
      this.cache.set(sessionId, cached); // the newest in use comes last
      return cached.entries;
    }
    const row = this.selectRev.get(sessionId) as { sid: number; rev: number; branched: number } | undefined;
    if (row === undefined) return [];
    const entries = windowOf(row.branched === 1 ? this.branch(row.sid) : this.line(row.sid));
    this.cache.set(sessionId, { sid: row.sid, rev: row.rev, entries, indexById: indexOf(entries) });
    this.cachedEntries += entries.length;
    this.evict();
    return entries;
  }

  /** A session without branches, from where the tail of its latest summary begins; the whole of it when that is nowhere. */
  private line(sid: number): Entry[] {
    const row = this.selectCompaction.get(sid) as EntryRow | undefined;
    if (row === undefined) return this.entries(this.selectLine.all(sid, 0));
    const tail = tailStart(entryOf(row));
    const from = tail === null ? row.seq : ((this.selectSeq.get(sid, tail) as number | undefined) ?? 0);
    return this.entries(this.selectLine.all(sid, from));
  }

  private branch(sid: number): Entry[] {
    return this.entries(this.selectPath.all({ sid }));
  }

  private entries(rows: unknown[]): Entry[] {
    return (rows as EntryRow[]).map(entryOf);
  }

  private evict(): void {
    for (const sessionId of this.cache.keys()) {
      if (this.cache.size <= 1 || (this.cache.size <= MAX_SESSIONS && this.cachedEntries <= MAX_ENTRIES)) return;
      this.forget(sessionId);
    }
  }
}

/** Puts a changed entry into a cached window; false when it does not fit there. */
function place(cached: Cached, change: EntryChange): boolean {
  if (change.how === 'other') return false;
  if (change.how === 'appended') {
    const tail = tailStart(change.entry);
    if (tail != null && !cached.indexById.has(tail)) return false;
    cached.indexById.set(change.entry.id, cached.entries.length);
    cached.entries.push(change.entry);
    if (tail === undefined) return true;
    cached.entries = windowOf(cached.entries);
    cached.indexById = indexOf(cached.entries);
    return true;
  }
  const index = cached.indexById.get(change.entry.id);
  if (index !== undefined) {
    // What was derived from a window is keyed by its array; a change before its end makes it another one.
    if (index < cached.entries.length - 1) cached.entries = cached.entries.slice();
    cached.entries[index] = change.entry;
  }
  return true; // an entry off the active path may change without touching the window
}

const indexOf = (entries: readonly Entry[]): Map<string, number> => new Map(entries.map((entry, index) => [entry.id, index]));
