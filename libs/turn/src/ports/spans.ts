/** What a span says of itself: never text of a message, arguments or a result. */
export type SpanAttributes = { [key: string]: string | number | boolean | string[] };

/** One finished piece of work of a turn. Times are ms since the epoch, with fractions. */
export interface Span {
  /** 16 hex digits. */
  span_id: string;
  /** The span that this one is part of; null for a turn that nobody else traces. */
  parent_id: string | null;
  name: string;
  /** `client`: it asks another system, as a generation does. */
  kind: 'internal' | 'client';
  start_ms: number;
  end_ms: number;
  /** A code that says why it failed; null when it did not. */
  error: string | null;
  attributes: SpanAttributes;
}

/** Spans of one turn. */
export interface TracePart {
  /** 32 hex digits, the same for a turn and its sub-agents. */
  trace_id: string;
  session_id: string;
  turn_id: string;
  /** False when whoever began the trace does not want it exported. */
  sampled: boolean;
  spans: readonly Span[];
}

/** Where finished spans go. Must not throw and must not block; what it cannot take it drops. */
export interface SpanSink {
  /** False while everything would be dropped: then nothing needs to be made. */
  readonly isOpen: boolean;
  record(part: TracePart): void;
}
/** Injection token of the `SpanSink`. */
export const SPANS = Symbol('harness:spans');
