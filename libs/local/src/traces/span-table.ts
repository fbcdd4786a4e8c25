import type { Span, TracePart } from '#libs/turn';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';

/** Rows for each trace that is kept, on average: a trace that never ends must not take all room there is. */
const ROWS_PER_TRACE = 100;
/** How many rows are added between two looks at what is too old. */
const PRUNE_EVERY = 200;

/** Spans of one turn as they are stored. */
export interface StoredPart {
  session_id: string;
  turn_id: string;
  spans: readonly Span[];
}

/** The table of finished spans. Its writes are to be made inside a write transaction. */
export class SpanTable {
  private readonly insert: SqliteStatement;
  private readonly byTrace: SqliteStatement;
  private readonly traceOfTurn: SqliteStatement;
  private readonly dropOldTraces: SqliteStatement;
  private readonly dropOldRows: SqliteStatement;
  private added = PRUNE_EVERY;

  constructor(db: SqliteConnection) {
    this.insert = db.prepare('INSERT INTO spans (trace_id, session_id, turn_id, body) VALUES (?, ?, ?, ?)');
    this.byTrace = db.prepare('SELECT session_id, turn_id, body FROM spans WHERE trace_id = ? ORDER BY seq');
    this.traceOfTurn = db.prepare('SELECT trace_id, session_id FROM spans WHERE turn_id = ? LIMIT 1');
    this.dropOldTraces = db.prepare(
      'DELETE FROM spans WHERE trace_id IN (SELECT trace_id FROM spans GROUP BY trace_id ORDER BY max(seq) DESC LIMIT -1 OFFSET ?)',
    );
    this.dropOldRows = db.prepare('DELETE FROM spans WHERE seq <= (SELECT max(seq) FROM spans) - ?');
  }

  /** Adds spans, and now and then drops those of the oldest traces beyond `keep`. */
  add(parts: readonly TracePart[], keep: number): void {
    for (const { trace_id, session_id, turn_id, spans } of parts) this.insert.run(trace_id, session_id, turn_id, JSON.stringify(spans));
    this.added += parts.length;
    if (this.added < PRUNE_EVERY) return;
    this.added = 0;
    this.dropOldTraces.run(keep);
    this.dropOldRows.run(keep * ROWS_PER_TRACE);
  }

  /** All that is stored of a trace. */
  trace(traceId: string): StoredPart[] {
    const rows = this.byTrace.all(traceId) as { session_id: string; turn_id: string; body: string }[];
    return rows.map(({ session_id, turn_id, body }) => ({ session_id, turn_id, spans: JSON.parse(body) as Span[] }));
  }

  /** The trace that a turn is part of, and its session; null when nothing is stored of it. */
  ofTurn(turnId: string): { trace_id: string; session_id: string } | null {
    return (this.traceOfTurn.get(turnId) as { trace_id: string; session_id: string } | undefined) ?? null;
  }
}
