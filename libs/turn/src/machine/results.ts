import { entryIds, type FunctionResultMessage, type JsonObject, type JsonValue } from '#libs/contracts';
import type { Write } from '../ports/journal.js';
import type { TurnRecord } from '../record/record.js';
import type { CallRefusal } from './calls.js';
import type { CallResult } from './decision.js';

/** A result that the loop makes up itself; `code` goes to `details.error`. */
export const syntheticResult = (code: string, functionId: string, message: string): CallResult => ({
  content: [{ type: 'text', text: message }],
  details: { error: code, function_id: functionId, message },
  is_error: true,
});

export const refusedResult = (functionId: string, refusal: CallRefusal): CallResult =>
  syntheticResult(refusal.code, functionId, refusal.message);

/** The target may have been called before a crash; calling it again could do things twice (invariant I4). */
export const unknownOutcome = (functionId: string): CallResult =>
  syntheticResult(
    'outcome_unknown',
    functionId,
    `The outcome of ${functionId} is unknown: the process ended while it ran. It may have run. Check before you call it again.`,
  );

/** A hook did not let the call pass. */
export const hookDenied = (functionId: string, by: string, reason: string): CallResult => ({
  content: [{ type: 'text', text: `${functionId} was not called: ${reason}` }],
  details: { error: 'hook_denied', function_id: functionId, hook: by, message: reason },
  is_error: true,
});

/** A hook that must see the result before anybody else could not. */
export const resultWithheld = (functionId: string, by: string, reason: string): CallResult => ({
  content: [{ type: 'text', text: `${functionId} was called, but its result is withheld: ${reason}` }],
  details: { error: 'hook_denied', function_id: functionId, hook: by, message: reason },
  is_error: true,
});

/** Nobody settled the call in time; that is not a refusal by anybody. */
export const timedOut = (functionId: string): CallResult =>
  syntheticResult('pending_timeout', functionId, `pending call timed out: nobody settled ${functionId} in time`);

/** What a submitted value is answered. */
export const submissionResult = (functionId: string, fault: string | null): CallResult =>
  fault === null
    ? { content: [{ type: 'text', text: 'The result was accepted.' }], details: null, is_error: false }
    : syntheticResult('invalid_result', functionId, `The result was not accepted: ${fault}. Hand in a value that meets the schema.`);

/** What a stopped turn says of its open calls. */
export const stoppedResult = (functionId: string, mayHaveRun: boolean): CallResult =>
  syntheticResult(
    'stopped',
    functionId,
    mayHaveRun ? `The turn was stopped while ${functionId} ran; it may have run.` : `${functionId} was not called: the turn was stopped.`,
  );

/** The write of a call's result entry. */
export function resultWrite(
  record: TurnRecord,
  callId: string,
  functionId: string,
  result: CallResult,
  now: number,
  annotations?: JsonObject,
): Write {
  const message: FunctionResultMessage = {
    role: 'function_result',
    function_call_id: callId,
    function_id: functionId,
    content: result.content,
    details: result.details,
    is_error: result.is_error,
    timestamp: now,
  };
  return {
    kind: 'append-entry',
    session_id: record.session_id,
    entry: {
      entry_id: entryIds.result(record.turn_id, callId),
      timestamp: now,
      origin: { turn_id: record.turn_id, ...annotations },
      message,
    },
  };
}

/** The write of a custom entry that tells a person what happened. */
export const customWrite = (record: TurnRecord, entryId: string, customType: string, data: JsonValue, now: number): Write => ({
  kind: 'append-entry',
  session_id: record.session_id,
  entry: { entry_id: entryId, timestamp: now, origin: { turn_id: record.turn_id }, custom: { custom_type: customType, data } },
});
