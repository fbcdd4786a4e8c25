import { type AgentMessage, type JsonObject, type ParentRef, textOf } from '#libs/contracts';
import { cut } from '../model/text.js';
import type { Write } from '../ports/journal.js';
import type { ParkedMessage, TurnOptions, TurnRecord } from '../record/record.js';
import { noUsage } from '../record/totals.js';
import { givenTrace } from '../tracing/ids.js';

/** Longest preview of a message in `turn-started`, in characters. */
const PREVIEW = 200;

/** What a new turn begins with. */
export interface Seed {
  session_id: string;
  turn_id: string;
  options: TurnOptions;
  /** The session's record before; the new one takes its place. */
  before: TurnRecord | null;
  depth: number;
  parent: ParentRef | null;
  /** The messages that the turn is for, in order. */
  messages: readonly { entry_id: string; message: AgentMessage; timestamp: number }[];
  /** Used only when the session is made. */
  title?: string | undefined;
  metadata?: JsonObject | undefined;
  /** The W3C trace context that the turn belongs to. */
  traceparent?: string | undefined;
  now: number;
}

/** The first record of a turn. */
export const seedRecord = ({ session_id, turn_id, options, before, depth, parent, now, traceparent }: Seed): TurnRecord => ({
  format: 1,
  session_id,
  turn_id,
  version: (before?.version ?? 0) + 1,
  claims: 0,
  status: 'running',
  step: 0,
  phase: 'generate',
  turn_count: 0,
  calls: [],
  call_count: 0,
  options,
  depth,
  parent,
  children: [],
  abort_requested: false,
  failures: 0,
  nudges: 0,
  submission: null,
  result: null,
  result_error: null,
  reason: null,
  totals: noUsage,
  started_at: now,
  ended_at: null,
  ...givenTrace(traceparent),
});

/** The one commit by which a turn begins: session, messages, record, queued step and `turn-started`. */
export function seedWrites(seed: Seed): Write[] {
  const { session_id, turn_id, title, metadata, now, depth, parent } = seed;
  const preview = cut(textOf(seed.messages.flatMap(({ message }) => message.content)), PREVIEW);
  return [
    {
      kind: 'ensure-session',
      session_id,
      ...(title === undefined ? {} : { title }),
      ...(metadata === undefined ? {} : { metadata }),
      timestamp: now,
    },
    ...seed.messages.map(
      ({ entry_id, message, timestamp }): Write => ({ kind: 'append-entry', session_id, entry: { entry_id, timestamp, message } }),
    ),
    { kind: 'save-record', record: seedRecord(seed), expectedVersion: seed.before?.version ?? null },
    { kind: 'set-status', session_id, status: 'working', timestamp: now },
    { kind: 'enqueue-step', payload: { session_id, turn_id, step: 0 } },
    {
      kind: 'emit',
      event: {
        type: 'harness::turn-started',
        payload: {
          session_id,
          turn_id,
          timestamp: now,
          depth,
          ...(preview === '' ? {} : { message_preview: preview }),
          ...(parent === null ? {} : { parent }),
        },
      },
    },
  ];
}

/** Takes parked messages off the queue, for a commit that stores their entries. */
export const takeParked = (session_id: string, parked: readonly ParkedMessage[]): Write[] =>
  parked.length === 0 ? [] : [{ kind: 'take-messages', session_id, entry_ids: parked.map((p) => p.entry_id) }];
