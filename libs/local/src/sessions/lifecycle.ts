import { Inject, Injectable } from '@nestjs/common';
import {
  HarnessError,
  type JsonObject,
  newEntryId,
  newSessionId,
  type SessionMeta,
  type SessionStatus,
  type TurnStatus,
} from '#libs/contracts';
import { isTerminal } from '#libs/turn';
import { DATABASE, type SqliteConnection, type SqliteStatement } from '../sqlite/index.js';
import { StoreCommits } from '../turns/commits.js';
import { decodeCursor, encodeCursor, pageSize } from './cursor.js';
import { matchesMetadata } from './metadata.js';
import { EntryPaths, EVERY_ENTRY } from './path.js';
import { SessionRepository } from './repository.js';
import { type EntryRow, entryOf, metaOf, type SessionRow } from './rows.js';
import { SqliteTranscript } from './transcript.js';
import { tailStart } from './window.js';

export type ListOrder = 'created_asc' | 'created_desc' | 'updated_desc';

/** What a caller may say of a new session, or change of one. */
export interface SessionTexts {
  title?: string | null;
  description?: string | null;
  metadata?: JsonObject | null;
}

export interface ListQuery {
  status?: SessionStatus | null;
  metadata?: JsonObject | null;
  order?: ListOrder | null;
  cursor?: string | null;
  limit?: number | null;
}

/** Sessions as wholes: made, listed, changed, forked, deleted. Each change is one durable commit. */
@Injectable()
export class SessionLifecycle {
  private readonly updateMeta: SqliteStatement;
  private readonly updateDraft: SqliteStatement;
  private readonly updateLeaf: SqliteStatement;
  private readonly afterFork: SqliteStatement;
  private readonly copyEntry: SqliteStatement;
  private readonly moveTail: SqliteStatement;
  private readonly selectTurn: SqliteStatement;
  private readonly removals: readonly SqliteStatement[];
  private readonly removeEntries: SqliteStatement;
  private readonly removeApproval: SqliteStatement;
  private readonly lists: Readonly<Record<ListOrder, { select: SqliteStatement; key: (row: SessionRow) => number; start: number }>>;
  private readonly paths: EntryPaths;

  constructor(
    @Inject(DATABASE) db: SqliteConnection,
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
    @Inject(StoreCommits) private readonly commits: StoreCommits,
    @Inject(SqliteTranscript) private readonly transcript: SqliteTranscript,
  ) {
    this.paths = new EntryPaths(db);
    this.updateMeta = db.prepare('UPDATE sessions SET title = ?, description = ?, metadata = ?, updated_at = ? WHERE sid = ? RETURNING *');
    this.updateDraft = db.prepare('UPDATE sessions SET draft = ? WHERE sid = ?');
    this.updateLeaf = db.prepare('UPDATE sessions SET leaf = ?, branched = 1, rev = rev + 1, updated_at = ? WHERE sid = ?');
    this.afterFork = db.prepare('UPDATE sessions SET leaf = ?, last_seq = ?, message_count = ?, rev = rev + 1 WHERE sid = ?');
    this.copyEntry = db.prepare(
      `INSERT INTO entries (sid, seq, entry_id, parent_id, role, custom_type, revision, timestamp, origin, body)
       SELECT ?, ?, ?, ?, role, custom_type, 0, timestamp, origin, body FROM entries WHERE sid = ? AND seq = ?`,
    );
    this.moveTail = db.prepare(`UPDATE entries SET body = json_set(body, '$.tail_start_entry_id', ?) WHERE sid = ? AND seq = ?`);
    this.selectTurn = db.prepare('SELECT status FROM turns WHERE session_id = ?');
    this.removals = ['parked', 'turns', 'sessions'].map((table) => db.prepare(`DELETE FROM ${table} WHERE session_id = ?`));
    // Sub-agents that outlive their root go on by its settings.
    this.removeApproval = db.prepare(
      'DELETE FROM approval_settings WHERE session_id = @id AND NOT EXISTS (SELECT 1 FROM turns WHERE root = @id)',
    );
    this.removeEntries = db.prepare('DELETE FROM entries WHERE sid = ?');
    const list = (where: string, order: string): SqliteStatement =>
      db.prepare(`SELECT * FROM sessions WHERE ${where} AND (@status IS NULL OR status = @status) ORDER BY ${order}`);
    this.lists = {
      created_asc: { select: list('sid > @key', 'sid'), key: (row) => row.sid, start: 0 },
      created_desc: { select: list('sid < @key', 'sid DESC'), key: (row) => row.sid, start: Number.MAX_SAFE_INTEGER },
      updated_desc: {
        select: list('(updated_at, sid) < (@key, @sid)', 'updated_at DESC, sid DESC'),
        key: (row) => row.updated_at,
        start: Number.MAX_SAFE_INTEGER,
      },
    };
  }

  create(texts: SessionTexts): Promise<{ session_id: string; meta: SessionMeta }> {
    return this.ensure(newSessionId(), texts).then(({ session_id, meta }) => ({ session_id, meta }));
  }

  /** Makes the session when it is not there. */
  ensure(sessionId: string, texts: SessionTexts): Promise<{ session_id: string; created: boolean; meta: SessionMeta }> {
    return this.commits.run(({ log }) => {
      const { row, created } = this.sessions.ensure({ session_id: sessionId, ...given(texts) }, Date.now(), log);
      return { session_id: sessionId, created, meta: metaOf(row) };
    }, 'session-ensure');
  }

  /** One page of sessions. A session that changes while it is paged by update may come twice or not at all. */
  list(query: ListQuery): { sessions: SessionMeta[]; next_cursor?: string } {
    const order = query.order ?? 'updated_desc';
    const limit = pageSize(query.limit);
    const { select, key, start } = this.lists[order];
    const [from, sid] = query.cursor == null ? [start, start] : decodeCursor(order, 2, query.cursor);
    const found: SessionRow[] = [];
    for (const row of select.iterate({
      key: from,
      status: query.status ?? null,
      ...(order === 'updated_desc' ? { sid } : {}),
    }) as Iterable<SessionRow>) {
      if (query.metadata != null && !matchesMetadata(query.metadata, metaOf(row).metadata)) continue;
      if (found.length === limit) {
        const last = found.at(-1) as SessionRow;
        return { sessions: found.map(metaOf), next_cursor: encodeCursor(order, [key(last), last.sid]) };
      }
      found.push(row);
    }
    return { sessions: found.map(metaOf) };
  }

  /** Changes what is given; metadata is replaced whole. */
  setMeta(sessionId: string, texts: SessionTexts): Promise<SessionMeta> {
    return this.commits.run(({ log }) => {
      const row = this.sessions.existing(sessionId);
      const now = Date.now();
      const metadata = texts.metadata == null ? row.metadata : JSON.stringify(texts.metadata);
      const meta = metaOf(
        this.updateMeta.get(texts.title ?? row.title, texts.description ?? row.description, metadata, now, row.sid) as SessionRow,
      );
      const { title, description } = meta;
      log.events.push({
        type: 'session::meta-updated',
        payload: {
          session_id: sessionId,
          title,
          description,
          ...(meta.metadata === undefined ? {} : { metadata: meta.metadata }),
          timestamp: now,
        },
      });
      return meta;
    }, 'session-set-meta');
  }

  setStatus(
    sessionId: string,
    status: SessionStatus,
    reason: string | undefined,
  ): Promise<{ status: SessionStatus; previous_status: SessionStatus }> {
    return this.commits.run(
      ({ log }) => ({ status, previous_status: this.sessions.setStatus(sessionId, status, reason, Date.now(), log) }),
      'session-set-status',
    );
  }

  /** Keeps text that was not sent yet; blank text clears it. Tells nobody, and leaves `updated_at` alone. */
  setDraft(sessionId: string, draft: string | null): Promise<string | null> {
    const kept = draft === null || draft.trim() === '' ? null : draft;
    return this.commits.run(() => {
      this.updateDraft.run(kept, this.sessions.existing(sessionId).sid);
      return kept;
    }, 'session-set-draft');
  }

  /** Makes an entry the end of the active path. */
  setActiveLeaf(sessionId: string, entryId: string): Promise<string> {
    return this.commits.run(({ log }) => {
      const session = this.sessions.existing(sessionId);
      this.sessions.existingEntry(session, entryId);
      if (session.leaf === entryId) return entryId;
      this.updateLeaf.run(entryId, Date.now(), session.sid);
      const entry = this.sessions.entry(sessionId, entryId);
      if (entry !== null)
        log.entries.push({ session_id: sessionId, sid: session.sid, from: session.rev, to: session.rev + 1, entry, how: 'other' });
      return entryId;
    }, 'session-set-active-leaf');
  }

  /** Copies the entries from the root to `entryId` into a new session, under new ids. */
  fork(sessionId: string, entryId: string, title: string | null | undefined): Promise<{ session_id: string; meta: SessionMeta }> {
    return this.commits.run(({ log }) => {
      const source = this.sessions.existing(sessionId);
      const path = this.paths.to(source, this.sessions.existingEntry(source, entryId).seq);
      const { description, metadata } = metaOf(source);
      const init = {
        session_id: newSessionId(),
        title: title ?? source.title,
        description,
        forked_from: sessionId,
        ...(metadata === undefined ? {} : { metadata }),
      };
      const { row } = this.sessions.ensure(init, Date.now(), log);
      const ids = new Map<string, string>();
      let leaf: string | null = null;
      let seq = 0;
      let messages = 0;
      for (
        let rows = path.after(0, EVERY_ENTRY, FORK_CHUNK);
        rows.length > 0;
        rows = path.after((rows.at(-1) as EntryRow).seq, EVERY_ENTRY, FORK_CHUNK)
      ) {
        for (const entry of rows) {
          const id = newEntryId();
          seq += 1;
          this.copyEntry.run(row.sid, seq, id, leaf, source.sid, entry.seq);
          ids.set(entry.entry_id, id);
          const tail = entry.custom_type === null ? undefined : tailStart(entryOf(entry));
          if (tail != null) this.moveTail.run(ids.get(tail) ?? tail, row.sid, seq);
          leaf = id;
          if (entry.role !== null) messages += 1;
        }
      }
      this.afterFork.run(leaf, seq, messages, row.sid);
      return { session_id: row.session_id, meta: metaOf(this.sessions.existing(row.session_id)) };
    }, 'session-fork');
  }

  /** Removes a session with all that belongs to it; false when there is none. Throws `session/turn_live` while its turn is not over. */
  async delete(sessionId: string): Promise<boolean> {
    const deleted = await this.commits.run(({ log }) => {
      const row = this.sessions.row(sessionId);
      if (row === undefined) return false;
      const turn = this.selectTurn.get(sessionId) as { status: TurnStatus } | undefined;
      if (turn !== undefined && !isTerminal(turn.status)) {
        throw new HarnessError(
          'session/turn_live',
          `session ${sessionId} has a turn that is not over; stop it with harness::stop, then delete the session`,
        );
      }
      this.removeEntries.run(row.sid);
      for (const removal of this.removals) removal.run(sessionId);
      this.removeApproval.run({ id: sessionId });
      const { metadata } = metaOf(row);
      log.events.push({
        type: 'session::deleted',
        payload: { session_id: sessionId, timestamp: Date.now(), ...(metadata === undefined ? {} : { metadata }) },
      });
      return true;
    }, 'session-delete');
    if (deleted) this.transcript.forget(sessionId);
    return deleted;
  }
}

/** Entries that a fork reads at once. */
const FORK_CHUNK = 256;

const given = ({ title, description, metadata }: SessionTexts): { title?: string; description?: string; metadata?: JsonObject } => ({
  ...(title == null ? {} : { title }),
  ...(description == null ? {} : { description }),
  ...(metadata == null ? {} : { metadata }),
});
