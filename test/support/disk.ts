import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { AgentMessage, JsonValue, SessionStatus } from '#libs/contracts';
import type { ParkedMessage, TurnRecord } from '#libs/turn';

/** A stored entry, read without the product's own code. */
export interface DiskEntry {
  seq: number;
  id: string;
  parent: string | null;
  timestamp: number;
  turn_id: string | null;
  /** Null for custom entries. */
  message: AgentMessage | null;
  custom: { type: string; data: JsonValue } | null;
}

/** What the database says of one session. */
export interface DiskSession {
  session_id: string;
  status: SessionStatus;
  status_reason: string | null;
  message_count: number;
  branched: boolean;
  leaf: string | null;
  entries: DiskEntry[];
  parked: ParkedMessage[];
  turn: { record: TurnRecord; status: string; job_step: number | null; owner: string | null } | null;
}

export interface Disk {
  integrity: string;
  sessions: DiskSession[];
  /** Events that are stored for delivery. */
  outbox: { type: string; payload: JsonValue }[];
}

interface SessionRow {
  sid: number;
  session_id: string;
  status: SessionStatus;
  status_reason: string | null;
  message_count: number;
  branched: number;
  leaf: string | null;
}
interface EntryRow {
  seq: number;
  entry_id: string;
  parent_id: string | null;
  role: string | null;
  custom_type: string | null;
  timestamp: number;
  origin: string | null;
  body: string;
}
interface TurnRow {
  turn_id: string;
  version: number;
  status: string;
  record: string;
  job_step: number | null;
  owner: string | null;
}

/** True when a data folder has a database with its tables: a process may have died before that. */
export function isDisk(dataDir: string): boolean {
  if (!existsSync(join(dataDir, 'harness.db'))) return false;
  const db = new Sqlite(join(dataDir, 'harness.db'), { readonly: true, timeout: 5_000 });
  try {
    return db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'turns'").get() !== undefined;
  } finally {
    db.close();
  }
}

/** Reads the whole database of a data folder, read only, as another process sees it. */
export function readDisk(dataDir: string): Disk {
  const db = new Sqlite(join(dataDir, 'harness.db'), { readonly: true, timeout: 5_000 });
  try {
    const rows = <T>(sql: string, ...values: unknown[]): T[] => db.prepare(sql).all(...values) as T[];
    const session = (row: SessionRow): DiskSession => {
      const turn = rows<TurnRow>('SELECT * FROM turns WHERE session_id = ?', row.session_id)[0];
      return {
        session_id: row.session_id,
        status: row.status,
        status_reason: row.status_reason,
        message_count: row.message_count,
        branched: row.branched === 1,
        leaf: row.leaf,
        entries: rows<EntryRow>('SELECT * FROM entries WHERE sid = ? ORDER BY seq', row.sid).map(entryOf),
        parked: rows<{ body: string }>('SELECT body FROM parked WHERE session_id = ? ORDER BY seq', row.session_id).map(
          ({ body }) => JSON.parse(body) as ParkedMessage,
        ),
        turn:
          turn === undefined
            ? null
            : { record: JSON.parse(turn.record) as TurnRecord, status: turn.status, job_step: turn.job_step, owner: turn.owner },
      };
    };
    return db.transaction(() => ({
      integrity: String(db.pragma('integrity_check', { simple: true })),
      sessions: rows<SessionRow>('SELECT * FROM sessions ORDER BY sid').map(session),
      outbox: rows<{ type: string; payload: string }>('SELECT type, payload FROM outbox ORDER BY seq').map(({ type, payload }) => ({
        type,
        payload: JSON.parse(payload) as JsonValue,
      })),
    }))();
  } finally {
    db.close();
  }
}

function entryOf(row: EntryRow): DiskEntry {
  const origin = row.origin === null ? null : (JSON.parse(row.origin) as { turn_id?: string });
  const body = JSON.parse(row.body) as JsonValue;
  return {
    seq: row.seq,
    id: row.entry_id,
    parent: row.parent_id,
    timestamp: row.timestamp,
    turn_id: origin?.turn_id ?? null,
    message: row.role === null ? null : (body as unknown as AgentMessage),
    custom: row.custom_type === null ? null : { type: row.custom_type, data: body },
  };
}

/** The turns of a data folder that are not over, and those over messages that wait. */
export function openTurns(dataDir: string): TurnRecord[] {
  const db = new Sqlite(join(dataDir, 'harness.db'), { readonly: true, timeout: 5_000 });
  try {
    const sql = `SELECT record FROM turns WHERE status IN ('running', 'awaiting_functions') OR session_id IN (SELECT session_id FROM parked)`;
    return db
      .prepare(sql)
      .pluck()
      .all()
      .map((record) => JSON.parse(record as string) as TurnRecord);
  } finally {
    db.close();
  }
}

/** How many jobs of named queues are not over. */
export function openJobs(dataDir: string): number {
  const db = new Sqlite(join(dataDir, 'harness.db'), { readonly: true, timeout: 5_000 });
  try {
    return db.prepare('SELECT count(*) FROM jobs WHERE dead = 0').pluck().get() as number;
  } finally {
    db.close();
  }
}

/** The lines of a file of JSON lines; a last line that was cut off by a crash is left out. */
export function jsonLines<T>(path: string): T[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);
}
