import { Inject, Injectable } from '@nestjs/common';
import { type Entry, HarnessError, type MessageItem, type Role } from '#libs/contracts';
import { DATABASE, type SqliteConnection } from '../sqlite/index.js';
import { decodeCursor, encodeCursor, invalidCursor, pageSize } from './cursor.js';
import { elidedItem, isActivity, itemOf, shownEntry } from './items.js';
import { type EntryFilter, type EntryPath, EntryPaths, EVERY_ENTRY } from './path.js';
import { SessionRepository } from './repository.js';
import type { EntryRow, SessionRow } from './rows.js';

/** A page of entries, oldest first. */
export interface MessagesPage {
  messages: MessageItem[];
  next_cursor?: string;
}

interface Query {
  session_id: string;
  limit?: number | null;
  include_image_data?: boolean | null;
}
export interface MessagesQuery extends Query {
  cursor?: string | null;
  from_entry_id?: string | null;
  after_entry_id?: string | null;
  roles?: Role[] | null;
  include_custom?: boolean | null;
}
export interface TailQuery extends Query {
  before_entry_id?: string | null;
  until_entry_id?: string | null;
  include_custom?: boolean | null;
}
export interface TailPage {
  messages: MessageItem[];
  has_more: boolean;
  oldest_entry_id?: string;
}
export interface RangeQuery extends Query {
  cursor?: string | null;
  from_entry_id?: string | null;
  to_entry_id?: string | null;
  entry_ids?: string[] | null;
}

/**
 * Reads what sessions hold. A cursor names the end of the path that its first page was read from, so that the pages of
 * one reading fit together whatever is appended or branched meanwhile.
 */
@Injectable()
export class SessionReader {
  private readonly paths: EntryPaths;

  constructor(
    @Inject(DATABASE) db: SqliteConnection,
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
  ) {
    this.paths = new EntryPaths(db);
  }

  /** One entry; null when there is no such entry or session. */
  entry(sessionId: string, entryId: string, images: boolean): Entry | null {
    const entry = this.sessions.entry(sessionId, entryId);
    return entry === null ? null : shownEntry(entry, images);
  }

  /** A page of the active path, or of the path to `from_entry_id`. Throws `session/invalid_cursor`, `session/entry_not_found`. */
  messages(query: MessagesQuery): MessagesPage {
    const session = this.sessions.existing(query.session_id);
    const start = this.start('messages', session, query.cursor, () => this.end(session, query.from_entry_id));
    if (start === null) return { messages: [] };
    const after =
      query.cursor == null && query.after_entry_id != null ? this.onPath(session, start.path, query.after_entry_id).seq : start.after;
    const filter: EntryFilter = { roles: query.roles ?? null, custom: query.include_custom === true && query.roles == null };
    return this.page('messages', session, start.path, after, filter, query);
  }

  /** Entries by their ids, or those of the active path between two. Throws as `messages` does. */
  range(query: RangeQuery): MessagesPage {
    const session = this.sessions.existing(query.session_id);
    const { from_entry_id: from, to_entry_id: to, entry_ids: ids } = query;
    const byIds = ids != null && from == null && to == null;
    if (!byIds && (ids != null || from == null || to == null)) {
      throw new HarnessError('session/invalid_request', 'give either from_entry_id and to_entry_id, or entry_ids');
    }
    const start = this.start('range', session, query.cursor, () => this.end(session, null));
    if (start === null) throw invalidCursor(`session ${session.session_id} has no entries`);
    if (byIds) return this.picked(session, start.path, start.after, ids, query);
    const [first, last] = [this.onPath(session, start.path, from ?? '').seq, this.onPath(session, start.path, to ?? '').seq];
    if (first > last) throw new HarnessError('session/invalid_request', 'from_entry_id must not come after to_entry_id');
    return this.page('range', session, this.paths.to(session, last), Math.max(start.after, first - 1), EVERY_ENTRY, query);
  }

  /** The newest blocks of the active path; a run of calls and results is one block, without its heavy parts. */
  tail(query: TailQuery): TailPage {
    const session = this.sessions.existing(query.session_id);
    const end = this.end(session, null);
    if (end === null && query.before_entry_id == null && query.until_entry_id == null) return { messages: [], has_more: false };
    const path = this.paths.to(session, end ?? 0);
    const before = query.before_entry_id == null ? null : this.onPath(session, path, query.before_entry_id).seq;
    const until = query.until_entry_id == null ? Number.MAX_SAFE_INTEGER : this.onPath(session, path, query.until_entry_id).seq;
    const limit = pageSize(query.limit);
    const found: MessageItem[] = [];
    let blocks = 0;
    let inRun = false;
    let skipping = before !== null;
    let oldest = Number.MAX_SAFE_INTEGER;
    for (const row of path.back(before ?? path.end)) {
      if (row.role === null && query.include_custom === false && row.seq !== before) continue;
      const item = itemOf(row, query.include_image_data !== false);
      const activity = isActivity(item);
      if (skipping && (row.seq === before || (inRun && activity))) {
        inRun = activity;
        continue;
      }
      if (skipping || !activity || !inRun) {
        skipping = false;
        if (blocks >= limit && oldest <= until) return tailPage(found, true);
        blocks += 1;
      }
      inRun = activity;
      oldest = row.seq;
      found.push(activity ? elidedItem(item) : item);
    }
    return tailPage(found, false);
  }

  /** The path of a first page, or of the page that the cursor names; null when the session is empty. */
  private start(
    list: string,
    session: SessionRow,
    cursor: string | null | undefined,
    end: () => number | null,
  ): { path: EntryPath; after: number } | null {
    if (cursor == null) {
      const leaf = end();
      return leaf === null ? null : { path: this.paths.to(session, leaf), after: 0 };
    }
    const [sid, leaf = 0, after = 0] = decodeCursor(list, 3, cursor);
    if (sid !== session.sid || leaf > session.last_seq) throw invalidCursor(`cursor is not one of session ${session.session_id}`);
    return { path: this.paths.to(session, leaf), after };
  }

  /** The position where a path ends: that of `entryId`, or the active leaf. */
  private end(session: SessionRow, entryId: string | null | undefined): number | null {
    if (entryId != null) return this.sessions.existingEntry(session, entryId).seq;
    return session.leaf === null ? null : this.sessions.existingEntry(session, session.leaf).seq;
  }

  private onPath(session: SessionRow, path: EntryPath, entryId: string): EntryRow {
    const row = this.sessions.entryRow(session.sid, entryId);
    if (row === undefined || !path.has(row.seq))
      throw invalidCursor(`entry ${JSON.stringify(entryId)} is not on the path that is read; read it from its start`);
    return row;
  }

  private page(list: string, session: SessionRow, path: EntryPath, after: number, filter: EntryFilter, query: Query): MessagesPage {
    const limit = pageSize(query.limit);
    const rows = path.after(after, filter, limit + 1);
    const messages = rows.slice(0, limit).map((row) => itemOf(row, query.include_image_data !== false));
    if (rows.length <= limit) return { messages };
    return { messages, next_cursor: encodeCursor(list, [session.sid, path.end, (rows[limit - 1] as EntryRow).seq]) };
  }

  private picked(session: SessionRow, path: EntryPath, after: number, ids: readonly string[], query: Query): MessagesPage {
    const limit = pageSize(query.limit);
    const rows = [...new Set(ids)]
      .map((id) => this.onPath(session, path, id))
      .sort((a, b) => a.seq - b.seq)
      .filter((row) => row.seq > after);
    const messages = rows.slice(0, limit).map((row) => itemOf(row, query.include_image_data !== false));
    if (rows.length <= limit) return { messages };
    return { messages, next_cursor: encodeCursor('range', [session.sid, path.end, (rows[limit - 1] as EntryRow).seq]) };
  }
}

function tailPage(newestFirst: MessageItem[], has_more: boolean): TailPage {
  const messages = newestFirst.reverse();
  return { messages, has_more, ...(messages[0] === undefined ? {} : { oldest_entry_id: messages[0].entry_id }) };
}
