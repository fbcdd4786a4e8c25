import type { TurnStatus } from '#libs/contracts';
import { isLive, type Journal, pendingSpan, type Span, type TurnRecord, traceOf, turnSpan } from '#libs/turn';
import type { SpanTable, StoredPart } from './span-table.js';

/** A span with the turn that it is of; `open` while what it tells of goes on. */
export interface TurnSpan extends Span {
  session_id: string;
  turn_id: string;
  open: boolean;
}

/** The spans of a turn and of its sub-agents, in the order in which they began; the turn's own is the first. */
export interface TurnSpans {
  trace_id: string;
  session_id: string;
  turn_id: string;
  status: TurnStatus;
  spans: TurnSpan[];
}

/**
 * Reads the trace of a turn, the session's latest when none is named: what is stored of it, and what the records of its turns say
 * beyond that of turns and calls that have not ended. Null when nothing is known of it.
 */
export async function readTrace(
  table: SpanTable,
  journal: Pick<Journal, 'load'>,
  sessionId: string,
  turnId: string | undefined,
  now: number,
): Promise<TurnSpans | null> {
  const latest = await journal.load(sessionId);
  const isLatest = latest !== null && (turnId === undefined || latest.turn_id === turnId);
  const turn_id = isLatest ? latest.turn_id : turnId;
  if (turn_id === undefined) return null;
  const stored = table.ofTurn(turn_id);
  if (!isLatest && stored?.session_id !== sessionId) return null;
  const trace_id = isLatest ? traceOf(latest).trace_id : stored?.trace_id;
  if (trace_id === undefined) return null;
  const parts = table.trace(trace_id);
  const records = await recordsOf(journal, parts, isLatest ? latest : null);
  const spans = below(rootId(turn_id), withOpen(parts, records, now));
  const status = spans[0]?.attributes['harness.status'];
  return status === undefined ? null : { trace_id, session_id: sessionId, turn_id, status: status as TurnStatus, spans };
}

const rootId = (turn_id: string): string => traceOf({ turn_id }).span_id;

/** The records that there are of the turns in a trace, the named one first, and of children that nothing is stored of yet. */
async function recordsOf(journal: Pick<Journal, 'load'>, parts: readonly StoredPart[], first: TurnRecord | null): Promise<TurnRecord[]> {
  const found = new Map<string, TurnRecord>();
  const wanted = [...(first === null ? [] : [first]), ...parts].map(({ session_id, turn_id }) => ({ session_id, turn_id }));
  const seen = new Set<string>();
  for (const { session_id, turn_id } of wanted) {
    if (seen.has(turn_id)) continue;
    seen.add(turn_id);
    const record = await journal.load(session_id);
    if (record?.turn_id !== turn_id) continue;
    found.set(turn_id, record);
    wanted.push(...record.children);
  }
  return [...found.values()];
}

/** The stored spans, with one for each turn and waiting call that has none yet. */
function withOpen(parts: readonly StoredPart[], records: readonly TurnRecord[], now: number): TurnSpan[] {
  const spans = parts.flatMap(({ session_id, turn_id, spans: own }) => own.map((span) => ({ ...span, session_id, turn_id, open: false })));
  const known = new Set(spans.map((span) => span.span_id));
  const add = (record: TurnRecord, span: Span): void => {
    const { session_id, turn_id } = record;
    if (!known.has(span.span_id)) spans.push({ ...span, session_id, turn_id, open: isLive(record) });
    known.add(span.span_id);
  };
  for (const record of records) {
    const trace = traceOf(record);
    add(record, turnSpan(record, { trace, now: record.ended_at ?? now }));
    for (const call of record.calls) if (call.state === 'pending') add(record, pendingSpan(record, call, now));
  }
  return spans;
}

/**
 * A span with all that is below it. What was stored without its parent, since the process that ran that was killed, belongs to the
 * span of its turn.
 */
function below(root: string, all: readonly TurnSpan[]): TurnSpan[] {
  const known = new Set(all.map((span) => span.span_id));
  const placed = all.map((span) => {
    const turn = rootId(span.turn_id);
    const isLost = span.span_id !== turn && (span.parent_id === null || !known.has(span.parent_id));
    return isLost ? { ...span, parent_id: turn } : span;
  });
  const children = new Map<string | null, TurnSpan[]>();
  for (const span of placed) {
    const siblings = children.get(span.parent_id);
    if (siblings === undefined) children.set(span.parent_id, [span]);
    else siblings.push(span);
  }
  const withChildren = (span: TurnSpan): TurnSpan[] => [span, ...inOrder(children.get(span.span_id) ?? []).flatMap(withChildren)];
  return placed.filter((span) => span.span_id === root).flatMap(withChildren);
}

const inOrder = (spans: readonly TurnSpan[]): TurnSpan[] => [...spans].sort((a, b) => a.start_ms - b.start_ms);
