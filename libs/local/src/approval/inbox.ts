import type { JsonObject, JsonValue } from '#libs/contracts';
import type { CallCheckpoint, TurnRecord, Write } from '#libs/turn';
import { decodeCursor, encodeCursor, pageSize } from '../sessions/cursor.js';
import { matchesMetadata } from '../sessions/metadata.js';
import type { SessionRepository } from '../sessions/repository.js';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import type { ApprovalEvent, ApprovalOutcome, PendingApproval } from './events.js';
import { environmentSecrets, excerptOf, shownTo } from './excerpt.js';

/** The hook function that holds calls for a person. */
export const GATE = 'approval::gate';
/** What `details.error` of a result says when a person denied the call. */
export const DENIED = 'approval_denied';

interface PendingRow {
  seq: number;
  session_id: string;
  turn_id: string;
  function_call_id: string;
  function_id: string;
  arguments_excerpt: string;
  depth: number;
  pending_at: number;
  expires_at: number;
}

/** Which pending calls are wanted. */
export interface PendingQuery {
  session_id?: string | null;
  metadata?: JsonObject | null;
  limit?: number | null;
  cursor?: string | null;
}

/**
 * The calls that wait for a person. A call is in the inbox exactly while its turn's record says that the gate holds it: the
 * commit that saves the record changes the inbox too, whatever settles the call. So nothing in it is ever stale, and a call
 * that is not in it yet is not parked yet.
 */
export class ApprovalInbox {
  private readonly selectOfSession: SqliteStatement;
  private readonly selectOne: SqliteStatement;
  private readonly selectPage: SqliteStatement;
  private readonly selectRecord: SqliteStatement;
  private readonly insert: SqliteStatement;
  private readonly remove: SqliteStatement;
  /** Values that nobody is shown, beside those of the environment. */
  keys: () => readonly string[] = () => [];

  constructor(
    db: SqliteConnection,
    private readonly sessions: SessionRepository,
  ) {
    this.selectOfSession = db.prepare('SELECT * FROM approvals WHERE session_id = ?');
    this.selectOne = db.prepare('SELECT * FROM approvals WHERE session_id = ? AND function_call_id = ?');
    this.selectPage = db.prepare('SELECT * FROM approvals WHERE seq > @after AND (@session IS NULL OR session_id = @session) ORDER BY seq');
    this.selectRecord = db.prepare('SELECT record FROM turns WHERE session_id = ?');
    this.insert = db.prepare(
      `INSERT INTO approvals (session_id, turn_id, function_call_id, function_id, arguments_excerpt, depth, pending_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`,
    );
    this.remove = db.prepare('DELETE FROM approvals WHERE seq = ?');
  }

  /** Inside the commit that saves `record`, with its other writes: brings the inbox up to date. `hadSome`: the session has rows in it. */
  follow(record: TurnRecord, writes: readonly Write[], hadSome: boolean): ApprovalEvent[] {
    const held = record.calls.filter(isHeld);
    if (!hadSome && held.length === 0) return [];
    const rows = this.selectOfSession.all(record.session_id) as PendingRow[];
    const now = Date.now();
    const events: ApprovalEvent[] = [];
    for (const row of rows) {
      if (row.turn_id === record.turn_id && held.some((call) => call.id === row.function_call_id)) continue;
      this.remove.run(row.seq);
      events.push(this.resolved(row, endOf(row, record, writes), now));
    }
    for (const call of held) {
      if (rows.some((row) => row.turn_id === record.turn_id && row.function_call_id === call.id)) continue;
      const excerpt = JSON.stringify(excerptOf(call.arguments ?? null, this.secrets()));
      const { session_id, turn_id, depth } = record;
      const row = this.insert.get(session_id, turn_id, call.id, call.function_id, excerpt, depth, now, call.expires_at ?? 0);
      events.push({ type: 'approval::pending-created', payload: { ...this.pendingOf(row as PendingRow), status: 'pending' } });
    }
    return events;
  }

  /** One pending call, or null. */
  find(sessionId: string, callId: string): PendingApproval | null {
    const row = this.selectOne.get(sessionId, callId) as PendingRow | undefined;
    return row === undefined ? null : this.pendingOf(row);
  }

  /** The arguments that a pending call would go on with, as hooks have left them: for the person who decides. */
  argumentsOf({ session_id, function_call_id }: PendingApproval): JsonValue {
    const row = this.selectRecord.get(session_id) as { record: string } | undefined;
    const calls = row === undefined ? [] : (JSON.parse(row.record) as TurnRecord).calls;
    return shownTo(calls.find((call) => call.id === function_call_id)?.arguments ?? null, this.secrets());
  }

  /** One page of pending calls, the oldest first. Throws `session/invalid_cursor`. */
  list(query: PendingQuery): { pending: PendingApproval[]; next_cursor?: string } {
    const limit = pageSize(query.limit);
    const [after = 0] = query.cursor == null ? [0] : decodeCursor('approvals', 1, query.cursor);
    const pending: PendingApproval[] = [];
    let last = after;
    for (const row of this.selectPage.iterate({ after, session: query.session_id ?? null }) as Iterable<PendingRow>) {
      const found = this.pendingOf(row);
      if (!matchesMetadata(query.metadata, found.session_metadata)) continue;
      if (pending.length === limit) return { pending, next_cursor: encodeCursor('approvals', [last]) };
      pending.push(found);
      last = row.seq;
    }
    return { pending };
  }

  private secrets(): string[] {
    return [...environmentSecrets(process.env), ...this.keys()];
  }

  private pendingOf({ seq: _, arguments_excerpt, ...row }: PendingRow): PendingApproval {
    const meta = this.sessions.meta(row.session_id);
    return {
      ...row,
      arguments_excerpt: JSON.parse(arguments_excerpt) as JsonValue,
      ...(meta === null ? {} : { session_title: meta.title, session_description: meta.description }),
      ...(meta?.metadata === undefined ? {} : { session_metadata: meta.metadata }),
    };
  }

  private resolved(row: PendingRow, end: { outcome: ApprovalOutcome; reason?: string }, now: number): ApprovalEvent {
    const { session_id, turn_id, function_call_id, function_id } = row;
    const metadata = this.sessions.meta(session_id)?.metadata;
    return {
      type: 'approval::pending-resolved',
      payload: {
        session_id,
        turn_id,
        function_call_id,
        function_id,
        ...end,
        ...(metadata === undefined ? {} : { session_metadata: metadata }),
        resolved_at: now,
      },
    };
  }
}

const isHeld = (call: CallCheckpoint): boolean => call.state === 'pending' && call.held_by === GATE;

/** How a call left the inbox: by the result that the same commit writes, or because it goes on. */
function endOf(row: PendingRow, record: TurnRecord, writes: readonly Write[]): { outcome: ApprovalOutcome; reason?: string } {
  for (const write of writes) {
    if (write.kind !== 'append-entry' || !('message' in write.entry) || write.entry.message.role !== 'function_result') continue;
    const { function_call_id, details } = write.entry.message;
    if (function_call_id !== row.function_call_id) continue;
    const said = typeof details === 'object' && details !== null && !Array.isArray(details) ? details : {};
    if (said['error'] === DENIED) return { outcome: 'deny', ...(typeof said['reason'] === 'string' ? { reason: said['reason'] } : {}) };
    return { outcome: said['error'] === 'pending_timeout' ? 'timeout' : 'aborted' };
  }
  const released =
    record.turn_id === row.turn_id && record.calls.some((call) => call.id === row.function_call_id && call.state === 'ready');
  return { outcome: released ? 'allow' : 'aborted' };
}
