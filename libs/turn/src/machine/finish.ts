import {
  type AssistantMessage,
  entryIds,
  type JsonValue,
  type SessionStatus,
  type TurnCompletedEvent,
  type TurnStatus,
  textOf,
} from '#libs/contracts';
import type { Write } from '../ports/journal.js';
import type { CallCheckpoint, TurnRecord } from '../record/record.js';
import { childOutcome } from '../spawn/outcome.js';
import type { Decision, Deliverable, TurnFailure, TurnInput } from './decision.js';
import { customWrite, resultWrite, stoppedResult } from './results.js';

/** How a turn ends. */
interface Ending {
  status: Extract<TurnStatus, 'completed' | 'cancelled' | 'failed'>;
  session: SessionStatus;
  reason: string | null;
  result: JsonValue;
  result_error: string | null;
  /** A conflict when a message is parked, so that no message is left without a reply. */
  requireNoneParked: boolean;
}

/** The terminal record and its writes; `before` are the entries that come first. Terminal never changes again (I6). */
export function end(record: TurnRecord, ending: Ending, before: Write[], now: number): Decision {
  const { status, reason, result, result_error } = ending;
  const ended: TurnRecord = {
    ...record,
    version: record.version + 1,
    status,
    phase: 'generate',
    calls: [],
    result,
    result_error,
    reason,
    failures: 0,
    ended_at: now,
  };
  const event: TurnCompletedEvent = {
    session_id: record.session_id,
    turn_id: record.turn_id,
    status,
    timestamp: now,
    depth: record.depth,
    terminal: true,
    ...(result === null ? {} : { result }),
    ...(result_error === null ? {} : { result_error }),
    ...(reason === null ? {} : { reason }),
    ...(record.parent === null ? {} : { parent: record.parent }),
  };
  return {
    record: ended,
    writes: [
      ...before,
      { kind: 'save-record', record: ended, expectedVersion: record.version, requireNoneParked: ending.requireNoneParked },
      { kind: 'settle-step', session_id: record.session_id },
      { kind: 'set-status', session_id: record.session_id, status: ending.session, ...(reason === null ? {} : { reason }), timestamp: now },
      { kind: 'emit', event: { type: 'harness::turn-completed', payload: event } },
      ...answerParent(ended),
    ],
    next: { do: 'rest', outcome: 'ended' },
  };
}

/** The parent's call is answered after this commit, at least once; it takes the first answer (I9). */
function answerParent(child: TurnRecord): Write[] {
  const { parent, session_id, turn_id, had_failure } = child;
  if (parent === null) return [];
  const payload = { session_id, turn_id, parent, result: childOutcome(child), ...(had_failure === true ? { had_failure } : {}) };
  return [{ kind: 'emit', event: { type: 'harness::child-ended', payload } }];
}

/** The turn did what it was asked. */
export const complete = (record: TurnRecord, deliverable: Deliverable, reason: string | null, before: Write[], now: number): Decision =>
  end(record, { status: 'completed', session: 'done', reason, ...deliverable, requireNoneParked: true }, before, now);

/** The turn has used its generations: completed, with a notice that says so. */
export function completeAtLimit(record: TurnRecord, before: Write[], now: number): Decision {
  const text = `The turn ended at its limit of ${record.options.max_turns} model calls; it may not be finished.`;
  const notice = customWrite(
    record,
    entryIds.notice(record.turn_id, 'max_turns'),
    'notice',
    { reason: 'max_turns', max_turns: record.options.max_turns, text },
    now,
  );
  return end(
    record,
    { status: 'completed', session: 'done', reason: 'max_turns', result: record.result, result_error: text, requireNoneParked: false },
    [...before, notice],
    now,
  );
}

/** The turn cannot go on: an `error` entry says why, open calls get results. */
export function fail(
  record: TurnRecord,
  failure: TurnFailure,
  before: Write[],
  now: number,
  partial: AssistantMessage | null = null,
): Decision {
  const data: JsonValue = {
    code: failure.code,
    message: failure.message,
    retryable: failure.retryable,
    step: record.step,
    ...(failure.kind === undefined ? {} : { kind: failure.kind }),
    ...(failure.provider === undefined ? {} : { provider: failure.provider }),
    ...(failure.model === undefined ? {} : { model: failure.model }),
  };
  const writes = [...before, ...settleOpen(record, now), customWrite(record, entryIds.error(record.turn_id), 'error', data, now)];
  return end(
    record,
    {
      status: 'failed',
      session: 'error',
      reason: failure.code,
      result: lastWords(record, partial),
      result_error: failure.message,
      requireNoneParked: false,
    },
    writes,
    now,
  );
}

/** The turn was stopped: what it had is kept, open calls get results, a notice says so. */
export function cancel(before: TurnRecord, stop: Pick<Extract<TurnInput, { type: 'stopped' }>, 'now' | 'partial' | 'returned'>): Decision {
  const { now, partial, returned } = stop;
  const call = before.calls.find((c) => c.id === returned?.call_id && c.state !== 'done');
  const answered = call === undefined || returned === null ? [] : [resultWrite(before, call.id, call.function_id, returned.result, now)];
  const record: TurnRecord = { ...before, calls: before.calls.map((c): CallCheckpoint => (c === call ? { ...c, state: 'done' } : c)) };
  // Once the generation is stored, a partial of it is that of an executor that came too late.
  const kept = partial === null || record.phase !== 'generate' ? [] : [partialWrite(record, partial, 'aborted', now)];
  const notice = customWrite(
    record,
    entryIds.notice(record.turn_id, 'stopped'),
    'notice',
    { reason: 'stopped', text: 'The turn was stopped.' },
    now,
  );
  return end(
    record,
    {
      status: 'cancelled',
      session: 'done',
      reason: 'stopped',
      result: lastWords(record, partial),
      result_error: null,
      requireNoneParked: false,
    },
    [...kept, ...answered, ...settleOpen(record, now), notice],
    now,
  );
}

/** Keeps what an ended stream had brought, without calls: they were never run and would stay without a result. */
export function partialWrite(record: TurnRecord, partial: AssistantMessage, stopReason: 'aborted' | 'error', now: number): Write {
  const content = partial.content.filter((block) => block.type !== 'function_call' && !(block.type === 'text' && block.text.trim() === ''));
  return {
    kind: 'put-entry',
    session_id: record.session_id,
    entry: {
      entry_id: entryIds.assistant(record.turn_id, record.step),
      timestamp: now,
      origin: { turn_id: record.turn_id },
      message: { ...partial, content, stop_reason: stopReason },
    },
  };
}

/** What the turn had said when it was cut short: not its result, but all that there is. */
const lastWords = (record: TurnRecord, partial: AssistantMessage | null): JsonValue => textOf(partial?.content ?? []) || record.result;

/** A result for every call that has none yet (invariant I5). */
function settleOpen(record: TurnRecord, now: number): Write[] {
  return record.calls
    .filter((call) => call.state !== 'done')
    .map((call) => resultWrite(record, call.id, call.function_id, stoppedResult(call.function_id, call.state === 'triggered'), now));
}
