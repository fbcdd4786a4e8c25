import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import type { EntryRow, SessionRow } from './rows.js';

const pathTo = (leaf: string): string => `WITH RECURSIVE path (seq, parent_id) AS (
  ${leaf}
  UNION ALL
  SELECT e.seq, e.parent_id FROM entries e JOIN path ON e.sid = @sid AND e.entry_id = path.parent_id
)`;

/** SQL: the latest summary of a session without branches. Left to itself, SQLite goes through all entries instead of the index of summaries. */
export const LATEST_COMPACTION = `SELECT * FROM entries INDEXED BY entries_compactions WHERE sid = ? AND custom_type = 'compaction' ORDER BY seq DESC LIMIT 1`;

/** SQL: where the entries begin that a summary does not cover; '' = after the summary, null for any other entry. */
const TAIL = `(CASE WHEN e.custom_type = 'compaction' THEN coalesce(json_extract(e.body, '$.tail_start_entry_id'), '') END)`;

/**
 * SQL: the entries of the active path of session `@sid`, as `path`, from where the tail of its latest summary begins. It goes
 * up from the leaf, so that it costs what the window holds and not what the session does.
 */
export const WINDOW_PATH = `WITH RECURSIVE path (seq, parent_id, tail, last) AS (
  SELECT e.seq, e.parent_id, ${TAIL}, ${TAIL} IS '' FROM entries e JOIN sessions s ON s.sid = e.sid AND e.entry_id = s.leaf WHERE s.sid = @sid
  UNION ALL
  SELECT e.seq, e.parent_id, coalesce(path.tail, ${TAIL}), e.entry_id IS path.tail OR (path.tail IS NULL AND ${TAIL} IS '')
  FROM entries e JOIN path ON e.sid = @sid AND e.entry_id = path.parent_id WHERE NOT path.last
)`;
const PATH_TO_SEQ = pathTo('SELECT seq, parent_id FROM entries WHERE sid = @sid AND seq = @leaf');

/** Which entries of a path are wanted. */
export interface EntryFilter {
  /** Null: messages of every role. */
  roles: readonly string[] | null;
  /** Also custom entries. */
  custom: boolean;
}

/** Everything on a path. */
export const EVERY_ENTRY: EntryFilter = { roles: null, custom: true };

const WANTED = `(CASE WHEN role IS NULL THEN @custom ELSE (@roles IS NULL OR role IN (SELECT value FROM json_each(@roles))) END)`;
const wanted = ({ roles, custom }: EntryFilter): { roles: string | null; custom: number } => ({
  roles: roles === null ? null : JSON.stringify(roles),
  custom: custom ? 1 : 0,
});

/** SQL: a page of a session without branches. Its work must not grow with what lies before the page. */
export const LINE_AFTER = `SELECT * FROM entries WHERE sid = @sid AND seq > @after AND seq <= @end AND ${WANTED} ORDER BY seq LIMIT @limit`;

/** The entries from the root of a session to one of its entries, readable from any point in both directions. */
export interface EntryPath {
  /** Position of the entry that it ends at. */
  readonly end: number;
  has(seq: number): boolean;
  /** Wanted entries after `seq`, oldest first. */
  after(seq: number, filter: EntryFilter, limit: number): EntryRow[];
  /** Entries from `seq` (with it) back to the root, newest first; they are read as they are asked for. */
  back(seq: number): Iterable<EntryRow>;
}

/** Rows that are read at once on the way back. */
const CHUNK = 128;

/** Reads paths. One of a session without branches is a range of positions, so a page costs the same wherever it is. */
export class EntryPaths {
  private readonly selectPath: SqliteStatement;
  private readonly lineAfter: SqliteStatement;
  private readonly lineBack: SqliteStatement;
  private readonly picked: SqliteStatement;

  constructor(db: SqliteConnection) {
    this.selectPath = db.prepare(`${PATH_TO_SEQ} SELECT seq FROM path ORDER BY seq`).pluck();
    this.lineAfter = db.prepare(LINE_AFTER);
    this.lineBack = db.prepare('SELECT * FROM entries WHERE sid = @sid AND seq <= @from ORDER BY seq DESC LIMIT @limit');
    this.picked = db.prepare(
      `SELECT * FROM entries WHERE sid = @sid AND seq IN (SELECT value FROM json_each(@seqs)) AND ${WANTED} ORDER BY seq`,
    );
  }

  /** The path to the entry at position `end`. */
  to(session: SessionRow, end: number): EntryPath {
    return session.branched === 1 ? this.branch(session.sid, end) : this.line(session.sid, end);
  }

  private line(sid: number, end: number): EntryPath {
    const { lineAfter, lineBack } = this;
    return {
      end,
      has: (seq) => seq >= 1 && seq <= end,
      after: (after, filter, limit) => lineAfter.all({ sid, after, end, limit, ...wanted(filter) }) as EntryRow[],
      *back(seq) {
        for (let from = seq; from > 0; ) {
          const rows = lineBack.all({ sid, from, limit: CHUNK }) as EntryRow[];
          yield* rows;
          from = (rows.at(-1)?.seq ?? 1) - 1;
        }
      },
    };
  }

  private branch(sid: number, end: number): EntryPath {
    const seqs = this.selectPath.all({ sid, leaf: end }) as number[];
    const { picked } = this;
    const read = (part: readonly number[], filter: EntryFilter): EntryRow[] =>
      picked.all({ sid, seqs: JSON.stringify(part), ...wanted(filter) }) as EntryRow[];
    return {
      end,
      has: (seq) => seqs[firstAfter(seqs, seq) - 1] === seq,
      after(after, filter, limit) {
        const found: EntryRow[] = [];
        for (let at = firstAfter(seqs, after); at < seqs.length && found.length < limit; at += CHUNK) {
          found.push(...read(seqs.slice(at, at + CHUNK), filter));
        }
        return found.slice(0, limit);
      },
      *back(seq) {
        for (let to = firstAfter(seqs, seq); to > 0; to -= CHUNK) {
          yield* read(seqs.slice(Math.max(0, to - CHUNK), to), EVERY_ENTRY).reverse();
        }
      },
    };
  }
}

/** Index of the first of the sorted `seqs` that is greater than `seq`. */
function firstAfter(seqs: readonly number[], seq: number): number {
  let low = 0;
  let high = seqs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((seqs[middle] ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
