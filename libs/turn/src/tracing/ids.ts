import { createHash, randomUUID } from 'node:crypto';
import type { TurnRecord } from '../record/record.js';

/** Where a turn is in its trace. Trace ids have 32 hex digits, span ids 16. */
export interface TurnTrace {
  trace_id: string;
  /** The span of the turn itself. */
  span_id: string;
  /** The span that the turn is part of: a parent's call, or one of whoever sent the message. */
  parent_id: string | null;
  sampled: boolean;
}

const TURN_ID = /^t_(?!0{16})([0-9a-f]{16}(?!0{16})[0-9a-f]{16})$/;
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/**
 * The place of a turn in its trace, always the same, so that any process goes on with it: the trace id is the turn's id without
 * `t_`, or that of the trace which the turn was begun in.
 */
export function traceOf({ turn_id, traceparent }: Pick<TurnRecord, 'turn_id' | 'traceparent'>): TurnTrace {
  const own = TURN_ID.exec(turn_id)?.[1] ?? hash(`turn ${turn_id}`, 32);
  const outer = traceparent === undefined ? null : parseTraceparent(traceparent);
  const span_id = own.slice(16);
  return outer === null ? { trace_id: own, span_id, parent_id: null, sampled: true } : { ...outer, span_id };
}

/** The span of a call: the same in the process that begins it, in the one that settles it, and for a child that it starts. */
export const callSpanId = (turnId: string, callId: string): string => hash(`call ${turnId} ${callId}`, 16);

/** A new id for a span that ends in the process that begins it. */
export const newSpanId = (): string => randomUUID().slice(19).replace('-', '');

/** The W3C form of a place in a trace. */
export const traceparentOf = ({ trace_id, sampled }: Pick<TurnTrace, 'trace_id' | 'sampled'>, spanId: string): string =>
  `00-${trace_id}-${spanId}-${sampled ? '01' : '00'}`;

/** Reads the W3C form; null for what is none, which is ignored as the standard has it. */
export function parseTraceparent(text: string): { trace_id: string; parent_id: string; sampled: boolean } | null {
  const [, trace_id, parent_id, flags] = TRACEPARENT.exec(text) ?? [];
  if (trace_id === undefined || parent_id === undefined || flags === undefined) return null;
  return { trace_id, parent_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The field of a record for what came with a request; nothing when that is no trace. */
export const givenTrace = (traceparent: string | undefined): { traceparent?: string } =>
  traceparent === undefined || parseTraceparent(traceparent) === null ? {} : { traceparent: traceparent.slice(0, 55) };

const hash = (text: string, digits: number): string => createHash('sha256').update(text).digest('hex').slice(0, digits);
