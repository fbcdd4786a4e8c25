import type { FunctionResultMessage } from '#libs/contracts';
import type { Decision } from '../machine/decision.js';
import type { Write } from '../ports/journal.js';
import type { Span, SpanSink } from '../ports/spans.js';
import { type CallCheckpoint, isTerminal, type TurnRecord } from '../record/record.js';
import { agentAttributes, toolSpan } from './genai.js';
import { callSpanId, type TurnTrace, traceOf } from './ids.js';
import { codeOf } from './words.js';

/** The error of a span that did not fail itself. */
export const DESCENDANT_FAILED = 'descendant_failed';

/** Where the spans of a decision belong, and when what they tell of began. */
interface Around {
  trace: TurnTrace;
  /** The span that calls are part of. */
  parent: string;
  now: number;
  /** When this process began its calls. */
  startOf?: ReadonlyMap<string, number>;
  /** Something has failed below the call that has its result now. */
  troubled?: boolean;
}

/** The spans that end with a committed decision: calls that have their result now, and the turn. `before` is the record until then. */
export function endedSpans(before: TurnRecord, { record, writes }: Pick<Decision, 'record' | 'writes'>, around: Around): Span[] {
  const spans = writes.flatMap((write) => callSpan(before, write, around, record.status === 'cancelled'));
  if (isTerminal(record.status) && !isTerminal(before.status)) spans.push(turnSpan(record, around));
  return spans;
}

/** Tells what a decision ended that was made outside of a step: by a resolve, a sweep or a stop. */
export function traceDecision(
  sink: SpanSink,
  before: TurnRecord,
  decision: Pick<Decision, 'record' | 'writes'>,
  now: number,
  troubled = false,
): void {
  if (!sink.isOpen) return;
  const trace = traceOf(before);
  const spans = endedSpans(before, decision, { trace, parent: trace.span_id, now, troubled });
  const { trace_id, sampled } = trace;
  if (spans.length > 0) sink.record({ trace_id, session_id: before.session_id, turn_id: before.turn_id, sampled, spans });
}

function callSpan(before: TurnRecord, write: Write, { parent, now, startOf, troubled }: Around, isStopped: boolean): Span[] {
  const result = write.kind === 'append-entry' && 'message' in write.entry ? write.entry.message : null;
  if (result?.role !== 'function_result') return [];
  const { function_call_id: id, function_id } = result;
  const since = before.calls.find((call) => call.id === id)?.since;
  return [
    {
      span_id: callSpanId(before.turn_id, id),
      parent_id: parent,
      ...toolSpan(function_id, id),
      kind: 'internal',
      start_ms: Math.min(now, since ?? now, startOf?.get(id) ?? now),
      end_ms: now,
      error: isStopped ? null : (resultError(result) ?? (troubled === true ? DESCENDANT_FAILED : null)),
    },
  ];
}

/** The code in the details of a result that is an error: its own, or that of the error which the target threw. */
export function resultError({ details, is_error }: Pick<FunctionResultMessage, 'details' | 'is_error'>): string | null {
  if (!is_error) return null;
  const error = fieldOf(details, 'error');
  return codeOf(typeof error === 'string' ? error : fieldOf(error, 'code'), 'function_failed');
}

const fieldOf = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as { [key: string]: unknown })[key] : undefined;

/** The span of a turn. It is marked when the turn failed, and also when something in it did. */
export function turnSpan(record: TurnRecord, { trace, now }: Pick<Around, 'trace' | 'now'>): Span {
  const inside = record.had_failure === true ? DESCENDANT_FAILED : null;
  return {
    span_id: trace.span_id,
    parent_id: trace.parent_id,
    name: 'invoke_agent',
    kind: 'internal',
    start_ms: record.started_at,
    end_ms: Math.max(record.started_at, record.ended_at ?? now, now),
    error: record.status === 'failed' ? codeOf(record.reason, 'failed') : inside,
    attributes: agentAttributes(record),
  };
}

/** The span of a call that still waits to be settled, as far as it has come. */
export const pendingSpan = ({ turn_id, started_at }: TurnRecord, { id, function_id, since }: CallCheckpoint, now: number): Span => ({
  span_id: callSpanId(turn_id, id),
  parent_id: traceOf({ turn_id }).span_id,
  ...toolSpan(function_id, id),
  kind: 'internal',
  start_ms: since ?? started_at,
  end_ms: now,
  error: null,
});
