import { entryIds } from '#libs/contracts';
import { userText } from '../model/text.js';
import type { Write } from '../ports/journal.js';
import type { CallCheckpoint, TurnRecord } from '../record/record.js';
import { type PlannedCall, SPAWN } from './calls.js';
import type { Decision, Deliverable, Limits, Next } from './decision.js';
import { complete, completeAtLimit } from './finish.js';
import { refusedResult, resultWrite, submissionResult } from './results.js';

/** What comes with a change of the calls: its writes so far, and what is needed to go on. */
export interface Advance {
  now: number;
  writes: readonly Write[];
  plan: readonly PlannedCall[];
  /** A user message waits that no generation has seen. */
  waiting: boolean;
  limits: Limits;
}

export const rest = (record: TurnRecord, outcome: 'skipped' | 'queued' | 'parked'): Decision => ({
  record,
  writes: [],
  next: { do: 'rest', outcome },
});
export const save = (before: TurnRecord, after: TurnRecord): Write => ({
  kind: 'save-record',
  record: after,
  expectedVersion: before.version,
});
/** The record with one of its calls replaced. */
export const withCall = (record: TurnRecord, call: CallCheckpoint): TurnRecord => ({
  ...record,
  calls: record.calls.map((c) => (c.id === call.id ? call : c)),
});

/**
 * Goes on after a change of the calls, in content order: a refused call is answered, a hooked one is screened, a spawn is
 * prepared, any other is marked `triggered` before it is invoked. With none left the turn parks for its pending calls, or
 * ends with what was submitted, or the next step is queued.
 */
export function advance(before: TurnRecord, current: TurnRecord, input: Advance): Decision {
  const writes = [...input.writes];
  let record = current;
  for (const call of current.calls) {
    if (call.state !== 'ready') continue;
    const planned = input.plan.find((p) => p.id === call.id);
    const refusal = planned === undefined ? LOST_CALL : planned.refusal;
    if (planned === undefined || refusal !== null) {
      writes.push(
        resultWrite(record, call.id, call.function_id, refusedResult(call.function_id, refusal ?? LOST_CALL), input.now, call.annotations),
      );
      record = withCall(record, { ...call, state: 'done' });
    } else if (planned.submission !== null) {
      const { value, fault } = planned.submission;
      writes.push(resultWrite(record, call.id, call.function_id, submissionResult(call.function_id, fault), input.now));
      record = {
        ...withCall(record, { ...call, state: 'done' }),
        submission: fault === null ? { value } : record.submission,
        nudges: record.nudges + (fault === null ? 0 : 1),
      };
      if (fault !== null) record = { ...record, result: value, result_error: fault };
    } else return begin(before, record, call, planned, writes);
  }
  return settle(before, record, { ...input, writes });
}

/** Begins the next open call: hooks first, then the child or the target. */
function begin(before: TurnRecord, current: TurnRecord, call: CallCheckpoint, planned: PlannedCall, writes: Write[]): Decision {
  const effective: PlannedCall = call.arguments === undefined ? planned : { ...planned, arguments: call.arguments };
  if (planned.hooked && call.screened !== true)
    return go(before, current, writes, { do: 'screen', call: effective, after: call.held_by ?? null });
  if (planned.function_id === SPAWN) return go(before, current, writes, { do: 'spawn', call: effective });
  const triggered = withCall(current, { ...call, state: 'triggered' });
  const after: TurnRecord = { ...triggered, version: before.version + 1 };
  return { record: after, writes: [...writes, save(before, after)], next: { do: 'invoke', call: effective } };
}

/** Commits what there is to commit, and goes on to an action that needs no checkpoint of its own. */
function go(before: TurnRecord, current: TurnRecord, writes: Write[], next: Next): Decision {
  if (writes.length === 0 && current.calls.every((call, index) => call.state === before.calls[index]?.state))
    return { record: { ...current, version: before.version }, writes: [], next };
  const after: TurnRecord = { ...current, version: before.version + 1 };
  return { record: after, writes: [...writes, save(before, after)], next };
}

/** No call is left to begin. */
function settle(before: TurnRecord, current: TurnRecord, input: Advance): Decision {
  const writes = [...input.writes];
  if (current.calls.some((call) => call.state === 'triggered')) {
    // Another executor of this step runs that call, and goes on after it; if it is gone, the step is taken up again.
    const after: TurnRecord = { ...current, version: before.version + 1 };
    return { record: after, writes: [...writes, save(before, after)], next: { do: 'rest', outcome: 'skipped' } };
  }
  if (current.calls.some((call) => call.state === 'pending')) {
    const after: TurnRecord = { ...current, status: 'awaiting_functions', version: before.version + 1 };
    return {
      record: after,
      writes: [...writes, save(before, after), { kind: 'settle-step', session_id: before.session_id }],
      next: { do: 'rest', outcome: 'parked' },
    };
  }
  if (current.submission !== null && !input.waiting) {
    return complete(
      { ...current, version: before.version },
      { result: current.submission.value, result_error: null },
      null,
      writes,
      input.now,
    );
  }
  const gaveUp = current.result_error !== null && current.nudges > input.limits.max_validation_retries;
  if (gaveUp && !input.waiting) {
    return complete(
      { ...current, version: before.version },
      { result: current.result, result_error: current.result_error },
      'invalid_result',
      writes,
      input.now,
    );
  }
  return nextStep(before, current, writes, input.now);
}

/** The model has given its last word: the turn ends with it, or the model is asked again for one that meets the contract. */
export function deliver(
  before: TurnRecord,
  current: TurnRecord,
  input: Advance & { deliverable: Deliverable },
  reason: string | null,
): Decision {
  const { deliverable, limits, now } = input;
  const fault = deliverable.result_error;
  const again = fault !== null && current.nudges < limits.max_validation_retries && current.turn_count < current.options.max_turns;
  if (!again)
    return complete(
      { ...current, version: before.version },
      deliverable,
      fault === null ? reason : 'invalid_result',
      [...input.writes],
      now,
    );
  const nudge: Write = {
    kind: 'append-entry',
    session_id: current.session_id,
    entry: {
      entry_id: entryIds.nudge(current.turn_id, current.nudges + 1),
      timestamp: now,
      origin: { turn_id: current.turn_id, nudge: current.nudges + 1 },
      message: userText(`Your answer does not meet the output contract: ${fault}. Answer again with only a JSON value that meets it.`, now),
    },
  };
  return nextStep(before, { ...current, nudges: current.nudges + 1 }, [...input.writes, nudge], now);
}

const LOST_CALL = { code: 'invalid_arguments', message: 'This call was not run: its message was replaced.' } as const;

/** Queues the next step in the commit that ends this one (I11). */
export function nextStep(before: TurnRecord, current: TurnRecord, writes: readonly Write[], now: number): Decision {
  if (current.turn_count >= current.options.max_turns) return completeAtLimit({ ...current, version: before.version }, [...writes], now);
  const after: TurnRecord = {
    ...current,
    version: before.version + 1,
    status: 'running',
    step: before.step + 1,
    phase: 'generate',
    calls: [],
    failures: 0,
    submission: null,
    result_error: null,
  };
  return {
    record: after,
    writes: [
      ...writes,
      save(before, after),
      { kind: 'enqueue-step', payload: { session_id: after.session_id, turn_id: after.turn_id, step: after.step } },
    ],
    next: { do: 'rest', outcome: 'queued' },
  };
}
