import { type AgentMessage, type Entry, HarnessError, type JsonObject, type SessionMeta, type SessionStatus } from '#libs/contracts';
import type { NewEntry } from '#libs/turn';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import type { ChangeLog } from './changes.js';
import { type EntryRow, entryOf, metaOf, type SessionRow } from './rows.js';

/** What an append came to. `created` is false when the entry id was there already. */
export interface Appended {
  entry: Entry;
  created: boolean;
}

export const sessionNotFound = (id: string): HarnessError =>
  new HarnessError('session/not_found', `there is no session ${JSON.stringify(id)}`);

/**
 * The stored sessions. Methods are synchronous; those that write run inside a transaction of the writer and tell a
 * `ChangeLog` what they did. Times are ms since the epoch.
 */
export class SessionRepository {
  private readonly selectSession: SqliteStatement;
  private readonly insertSession: SqliteStatement;
  private readonly selectEntry: SqliteStatement;
  private readonly insertEntry: SqliteStatement;
  private readonly updateBody: SqliteStatement;
  private readonly advance: SqliteStatement;
  private readonly touch: SqliteStatement;
  private readonly updateStatus: SqliteStatement;

  constructor(db: SqliteConnection) {
    this.selectSession = db.prepare('SELECT * FROM sessions WHERE session_id = ?');
    this.insertSession = db.prepare(
      `INSERT INTO sessions (session_id, title, description, status, metadata, forked_from, created_at, updated_at)
       VALUES (?, ?, ?, 'idle', ?, ?, ?, ?) RETURNING *`,
    );
    this.selectEntry = db.prepare('SELECT * FROM entries WHERE sid = ? AND entry_id = ?');
    this.insertEntry = db.prepare(
      `INSERT INTO entries (sid, seq, entry_id, parent_id, role, custom_type, revision, timestamp, origin, body)
       VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?)`,
    );
    this.updateBody = db.prepare('UPDATE entries SET body = ?, origin = ?, revision = ?, role = ? WHERE sid = ? AND seq = ?');
    this.advance = db.prepare(
      `UPDATE sessions SET leaf = ?, last_seq = ?, rev = rev + 1, branched = ?, message_count = message_count + ?, updated_at = ? WHERE sid = ?`,
    );
    this.touch = db.prepare('UPDATE sessions SET rev = rev + 1, updated_at = ? WHERE sid = ?');
    this.updateStatus = db.prepare('UPDATE sessions SET status = ?, status_reason = ?, updated_at = ? WHERE sid = ?');
  }

  row(sessionId: string): SessionRow | undefined {
    return this.selectSession.get(sessionId) as SessionRow | undefined;
  }

  /** The row of a session that must exist; throws `session/not_found`. */
  existing(sessionId: string): SessionRow {
    const row = this.row(sessionId);
    if (row === undefined) throw sessionNotFound(sessionId);
    return row;
  }

  /** The row of an entry that must exist; throws `session/entry_not_found`. */
  existingEntry(session: SessionRow, entryId: string): EntryRow {
    const row = this.entryRow(session.sid, entryId);
    if (row === undefined)
      throw new HarnessError('session/entry_not_found', `session ${session.session_id} has no entry ${JSON.stringify(entryId)}`);
    return row;
  }

  meta(sessionId: string): SessionMeta | null {
    const row = this.row(sessionId);
    return row === undefined ? null : metaOf(row);
  }

  entry(sessionId: string, entryId: string): Entry | null {
    const session = this.row(sessionId);
    const row = session === undefined ? undefined : this.entryRow(session.sid, entryId);
    return row === undefined ? null : entryOf(row);
  }

  /** Creates the session when it is not there; says whether it did. */
  ensure(
    init: { session_id: string; title?: string; description?: string; metadata?: JsonObject; forked_from?: string },
    now: number,
    log: ChangeLog,
  ): { row: SessionRow; created: boolean } {
    const found = this.row(init.session_id);
    if (found !== undefined) return { row: found, created: false };
    const metadata = init.metadata === undefined ? null : JSON.stringify(init.metadata);
    const row = this.insertSession.get(
      init.session_id,
      init.title ?? '',
      init.description ?? '',
      metadata,
      init.forked_from ?? null,
      now,
      now,
    ) as SessionRow;
    log.events.push({
      type: 'session::created',
      payload: {
        session_id: row.session_id,
        title: row.title,
        description: row.description,
        status: row.status,
        created_at: now,
        ...(init.forked_from === undefined ? {} : { forked_from: init.forked_from }),
      },
    });
    return { row, created: true };
  }

  /** Appends at `parentId`, by default the active leaf, which moves to the new entry. An entry id that is there is a no-op. */
  append(sessionId: string, entry: NewEntry, log: ChangeLog, parentId?: string): Appended {
    const session = this.existing(sessionId);
    const present = this.entryRow(session.sid, entry.entry_id);
    if (present !== undefined) return { entry: entryOf(present), created: false };
    if (parentId !== undefined && this.entryRow(session.sid, parentId) === undefined) {
      throw new HarnessError('session/parent_not_found', `session ${sessionId} has no entry ${JSON.stringify(parentId)} to append to`);
    }
    const parent = parentId ?? session.leaf;
    const row = this.insert(session, entry, parent);
    const inLine = parent === session.leaf;
    this.advance.run(row.entry_id, row.seq, inLine ? session.branched : 1, row.role === null ? 0 : 1, entry.timestamp, session.sid);
    const stored = entryOf(row);
    log.entries.push({
      session_id: sessionId,
      sid: session.sid,
      from: session.rev,
      to: session.rev + 1,
      entry: stored,
      how: inLine ? 'appended' : 'other',
    });
    log.events.push({
      type: 'session::message-added',
      payload: {
        session_id: sessionId,
        entry_id: row.entry_id,
        parent_id: parent,
        ...('message' in entry ? { message: entry.message } : { custom: entry.custom }),
        ...(entry.origin === undefined ? {} : { origin: entry.origin }),
        timestamp: entry.timestamp,
      },
    });
    return { entry: stored, created: true };
  }

  /** Replaces the message of an entry, or appends it when it is not there. */
  put(sessionId: string, entry: NewMessageEntry, log: ChangeLog): void {
    const session = this.existing(sessionId);
    const present = this.entryRow(session.sid, entry.entry_id);
    if (present === undefined) this.append(sessionId, entry, log);
    else this.replace(session, present, entry.message, entry.origin ?? parsedOrigin(present), entry.timestamp, log);
  }

  /** Stores a new message of an existing entry under the next revision; returns that. */
  replace(
    session: SessionRow,
    present: EntryRow,
    message: AgentMessage,
    origin: JsonObject | undefined,
    now: number,
    log: ChangeLog,
  ): number {
    const row: EntryRow = {
      ...present,
      role: message.role,
      revision: present.revision + 1,
      body: JSON.stringify(message),
      origin: origin === undefined ? null : JSON.stringify(origin),
    };
    this.updateBody.run(row.body, row.origin, row.revision, row.role, session.sid, row.seq);
    this.touch.run(now, session.sid);
    log.entries.push({
      session_id: session.session_id,
      sid: session.sid,
      from: session.rev,
      to: session.rev + 1,
      entry: entryOf(row),
      how: 'replaced',
    });
    log.events.push({
      type: 'session::message-updated',
      payload: {
        session_id: session.session_id,
        entry_id: row.entry_id,
        message,
        revision: row.revision,
        ...(origin === undefined ? {} : { origin }),
        timestamp: now,
      },
    });
    return row.revision;
  }

  /** Sets the status; the same status and reason again changes nothing. Returns the status before. */
  setStatus(sessionId: string, status: SessionStatus, reason: string | undefined, now: number, log: ChangeLog): SessionStatus {
    const session = this.existing(sessionId);
    const kept = status === 'idle' ? null : (reason ?? null);
    if (session.status === status && session.status_reason === kept) return session.status;
    this.updateStatus.run(status, kept, now, session.sid);
    log.events.push({
      type: 'session::status-changed',
      payload: {
        session_id: sessionId,
        status,
        previous_status: session.status,
        ...(kept === null ? {} : { status_reason: kept }),
        timestamp: now,
      },
    });
    return session.status;
  }

  entryRow(sid: number, entryId: string): EntryRow | undefined {
    return this.selectEntry.get(sid, entryId) as EntryRow | undefined;
  }

  private insert(session: SessionRow, entry: NewEntry, parent: string | null): EntryRow {
    const isMessage = 'message' in entry;
    const row: EntryRow = {
      seq: session.last_seq + 1,
      entry_id: entry.entry_id,
      parent_id: parent,
      role: isMessage ? entry.message.role : null,
      custom_type: isMessage ? null : entry.custom.custom_type,
      revision: 0,
      timestamp: entry.timestamp,
      origin: entry.origin === undefined ? null : JSON.stringify(entry.origin),
      body: JSON.stringify(isMessage ? entry.message : entry.custom.data),
    };
    this.insertEntry.run(session.sid, row.seq, row.entry_id, row.parent_id, row.role, row.custom_type, row.timestamp, row.origin, row.body);
    return row;
  }
}

/** A new entry that holds a message. */
export type NewMessageEntry = Extract<NewEntry, { message: AgentMessage }>;
const parsedOrigin = (row: EntryRow): JsonObject | undefined => (row.origin === null ? undefined : (JSON.parse(row.origin) as JsonObject));
