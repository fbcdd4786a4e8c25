import { entryIds, type JsonObject, textOf } from '#libs/contracts';
import { COMPACTION } from '../context/compaction.js';
import type { Write } from '../ports/journal.js';
import { type CallCheckpoint, isTerminal, type TurnRecord } from '../record/record.js';
import { addUsage } from '../record/totals.js';
import { advance, deliver, nextStep, rest, save, withCall } from './advance.js';
import type { PlannedCall } from './calls.js';
import type { Decision, TurnInput } from './decision.js';
import { noteFailure } from './failures.js';
import { cancel, complete, completeAtLimit, fail, partialWrite } from './finish.js';
import { expired, resolved } from './pending.js';
import { customWrite, hookDenied, refusedResult, resultWrite, unknownOutcome } from './results.js';

/**
 * The turn machine: what to write and what to do next, given the record and what just happened. It does no I/O, reads
 * no clock and makes no id. The writes of a decision are one commit; its `save-record` names the version that it
 * replaces, so that of two executors of the same step only one goes on.
 */
export function decide(record: TurnRecord, given: TurnInput): Decision {
  const input = record.abort_requested ? asStopped(given) : given;
  return noteFailure(decideOn(record, input), input);
}

function decideOn(record: TurnRecord, input: TurnInput): Decision {
  if (isLate(record, input)) return rest(record, 'skipped');
  switch (input.type) {
    case 'begin':
      return begin(record, input);
    case 'generated':
      return generated(record, input);
    case 'compacted':
      return compacted(record, input);
    case 'generation-failed':
      return generationFailed(record, input);
    case 'call-returned':
      return callReturned(record, input);
    case 'step-failed':
      return retryOrFail(record, input, [], input.limits.step_max_retries);
    case 'call-screened':
      return callScreened(record, input);
    case 'call-spawned':
      return callSpawned(record, input);
    case 'resolved':
      return resolved(record, input);
    case 'expired':
      return expired(record, input.now);
    case 'vetoed':
      return fail(record, input.failure, [], input.now);
    case 'stop-requested':
      return stopRequested(record);
    case 'stopped':
      return isTerminal(record.status) ? rest(record, 'skipped') : cancel(record, input);
    case 'nothing-to-reply':
      return nothingToReply(record, input);
    default: {
      const unknown: never = input;
      throw new Error(`unknown input ${JSON.stringify(unknown)}`);
    }
  }
}

type Input<T extends TurnInput['type']> = Extract<TurnInput, { type: T }>;

/** What an input amounts to once a stop was asked for: finished text and results are kept, nothing is begun (I12). */
function asStopped(input: TurnInput): TurnInput {
  switch (input.type) {
    case 'generated':
      return { type: 'stopped', now: input.now, partial: input.message, returned: null };
    case 'generation-failed':
      return { type: 'stopped', now: input.now, partial: input.partial, returned: null };
    case 'call-returned':
      return { type: 'stopped', now: input.now, partial: null, returned: { call_id: input.call_id, result: input.result } };
    case 'compacted':
    case 'nothing-to-reply':
    case 'call-screened':
    case 'call-spawned':
    case 'vetoed':
    case 'step-failed':
      return { type: 'stopped', now: input.now, partial: null, returned: null };
    case 'begin':
    case 'resolved':
    case 'expired':
    case 'stop-requested':
    case 'stopped':
      return input;
    default: {
      const unknown: never = input;
      throw new Error(`unknown input ${JSON.stringify(unknown)}`);
    }
  }
}

/** True for what a second executor of the same step brings when the first has gone on: it may change nothing (I3, I4). */
function isLate(record: TurnRecord, input: TurnInput): boolean {
  switch (input.type) {
    case 'generated':
    case 'compacted':
    case 'generation-failed':
    case 'nothing-to-reply':
    case 'vetoed':
      return record.status !== 'running' || record.phase !== 'generate';
    case 'step-failed':
      return record.status !== 'running';
    default:
      return false;
  }
}

function begin(record: TurnRecord, input: Input<'begin'>): Decision {
  const stale = input.turn_id !== record.turn_id || input.step !== record.step || record.status !== 'running';
  if (stale) return rest(record, 'skipped');
  if (record.abort_requested) return cancel(record, { now: input.now, partial: null, returned: null });
  if (record.phase === 'calls') return resumeCalls(record, input);
  if (record.turn_count >= record.options.max_turns) return completeAtLimit(record, [], input.now);
  // A generation that was cut off is done again into the same entry; what was parked meanwhile belongs after it.
  if (input.sketched || input.parked.length === 0) return { record, writes: [], next: { do: 'generate' } };
  const after: TurnRecord = { ...record, version: record.version + 1 };
  return { record: after, writes: [...drain(record, input.parked), save(record, after)], next: { do: 'generate' } };
}

/** Moves parked messages into the transcript, in order of arrival, each under the id that its send was given (I2). */
export function drain(record: TurnRecord, parked: Input<'begin'>['parked']): Write[] {
  return [
    ...parked.map(
      (p): Write => ({
        kind: 'append-entry',
        session_id: record.session_id,
        entry: { entry_id: p.entry_id, timestamp: p.timestamp, origin: { turn_id: record.turn_id }, message: p.message },
      }),
    ),
    { kind: 'take-messages', session_id: record.session_id, entry_ids: parked.map((p) => p.entry_id) },
  ];
}

/** The process ended among the calls of a step: what may have run is not run again (I4), the rest goes on. */
function resumeCalls(record: TurnRecord, input: Input<'begin'>): Decision {
  const writes: Write[] = [];
  const calls = record.calls.map((call): CallCheckpoint => {
    if (call.state !== 'triggered') return call;
    writes.push(resultWrite(record, call.id, call.function_id, unknownOutcome(call.function_id), input.now));
    return { ...call, state: 'done' };
  });
  return advance(record, { ...record, calls }, { ...input, writes });
}

function generated(record: TurnRecord, input: Input<'generated'>): Decision {
  const { message, plan, now } = input;
  const before: Write[] = [assistantWrite(record, input)];
  const text = textOf(message.content);
  const counted: TurnRecord = {
    ...record,
    turn_count: record.turn_count + 1,
    call_count: record.call_count + plan.length,
    totals: addUsage(addUsage(record.totals, message.usage ?? null), input.spent ?? null),
    result: text === '' ? record.result : text,
    failures: 0,
  };
  if (plan.length > 0) {
    // What is beyond the number of calls is answered at once, and needs no checkpoint.
    const isSurplus = (call: PlannedCall): boolean => call.refusal?.code === 'too_many_calls';
    const answers = plan
      .filter(isSurplus)
      .flatMap(({ id, function_id, refusal }) =>
        refusal === null ? [] : [resultWrite(record, id, function_id, refusedResult(function_id, refusal), now)],
      );
    const calls = plan
      .filter((call) => !isSurplus(call))
      .map((call): CallCheckpoint => ({ id: call.id, function_id: call.function_id, state: 'ready' }));
    return advance(record, { ...counted, phase: 'calls', calls }, { ...input, writes: [...before, ...answers] });
  }
  if (input.waiting) return nextStep(record, counted, before, now);
  return deliver(record, counted, { ...input, writes: before }, message.stop_reason === 'length' ? 'length' : null);
}

/** The turn ends; what it said before a message came that no model sees is what it hands over. */
function nothingToReply(record: TurnRecord, input: Input<'nothing-to-reply'>): Decision {
  const { now, last, waiting } = input;
  if (waiting) return nextStep(record, record, [], now);
  if (last === null) return complete(record, { result: null, result_error: null }, 'nothing_to_reply', [], now);
  return deliver(record, record, { ...input, writes: [], plan: [] }, last.stop_reason === 'length' ? 'length' : null);
}

const assistantWrite = (record: TurnRecord, { message, now, annotations }: Input<'generated'>): Write => ({
  kind: 'put-entry',
  session_id: record.session_id,
  entry: {
    entry_id: entryIds.assistant(record.turn_id, record.step),
    timestamp: now,
    origin: { turn_id: record.turn_id, ...annotations },
    message,
  },
});

function callReturned(record: TurnRecord, input: Input<'call-returned'>): Decision {
  const call = record.calls.find((c) => c.id === input.call_id);
  if (call === undefined || call.state === 'done' || call.state === 'pending') return rest(record, 'skipped');
  const annotations = { ...call.annotations, ...input.annotations };
  const result = resultWrite(record, call.id, call.function_id, input.result, input.now, annotations);
  return advance(record, withCall(record, { ...call, state: 'done' }), { ...input, writes: [result] });
}

function callScreened(record: TurnRecord, input: Input<'call-screened'>): Decision {
  const call = record.calls.find((c) => c.id === input.call_id);
  if (call === undefined || call.state !== 'ready') return rest(record, 'skipped');
  const { verdict, now } = input;
  switch (verdict.kind) {
    case 'run': {
      const passed: CallCheckpoint = {
        ...call,
        screened: true,
        ...(verdict.arguments === undefined ? {} : { arguments: verdict.arguments }),
        ...noted(call, verdict.annotations),
      };
      return advance(record, withCall(record, passed), { ...input, writes: [] });
    }
    case 'deny': {
      const result = resultWrite(
        record,
        call.id,
        call.function_id,
        hookDenied(call.function_id, verdict.by, verdict.reason),
        now,
        noted(call, verdict.annotations).annotations ?? call.annotations,
      );
      return advance(record, withCall(record, { ...call, state: 'done' }), { ...input, writes: [result] });
    }
    case 'hold': {
      const held: CallCheckpoint = {
        ...call,
        state: 'pending',
        since: call.since ?? now,
        held_by: verdict.by,
        arguments: verdict.arguments,
        expires_at: verdict.expires_at,
        ...noted(call, verdict.annotations),
      };
      return advance(record, withCall(record, held), { ...input, writes: [] });
    }
    default: {
      const unknown: never = verdict;
      throw new Error(`unknown verdict ${JSON.stringify(unknown)}`);
    }
  }
}

const noted = (call: CallCheckpoint, annotations: JsonObject | undefined): { annotations?: JsonObject } =>
  annotations === undefined ? {} : { annotations: { ...call.annotations, ...annotations } };

/** The call waits for its child, which begins in the same commit: so a repeat finds the call pending and makes no second one. */
function callSpawned(record: TurnRecord, input: Input<'call-spawned'>): Decision {
  const call = record.calls.find((c) => c.id === input.call_id);
  if (call === undefined || call.state !== 'ready') return rest(record, 'skipped');
  const pending: CallCheckpoint = {
    ...call,
    state: 'pending',
    child: input.child,
    expires_at: input.expires_at,
    since: call.since ?? input.now,
  };
  const children = [...record.children, { function_call_id: call.id, ...input.child }];
  return advance(record, { ...withCall(record, pending), children }, { ...input, writes: [...input.writes] });
}

/** The summary and what it has cost are stored together, so that after a crash it is neither made nor counted again. */
function compacted(record: TurnRecord, { data, usage, now }: Input<'compacted'>): Decision {
  const after: TurnRecord = { ...record, version: record.version + 1, totals: addUsage(record.totals, usage) };
  const entry = customWrite(record, entryIds.compaction(record.turn_id, record.step), COMPACTION, data, now);
  return { record: after, writes: [entry, save(record, after)], next: { do: 'generate' } };
}

function generationFailed(record: TurnRecord, input: Input<'generation-failed'>): Decision {
  const { partial, limits } = input;
  const hasText = partial !== null && textOf(partial.content).trim() !== '';
  const kept = partial !== null && partial.content.length > 0 ? [partialWrite(record, partial, 'error', input.now)] : [];
  const counted = partial === null ? record : { ...record, totals: addUsage(record.totals, partial.usage ?? null) };
  // The router has retried what failed before its first frame; a stream that broke after some text is done again here.
  return retryOrFail(counted, input, kept, hasText ? limits.max_transient_resumes : 0);
}

function retryOrFail(record: TurnRecord, input: Input<'generation-failed'> | Input<'step-failed'>, kept: Write[], tries: number): Decision {
  const { failure, limits, now } = input;
  if (!failure.retryable || record.failures >= tries)
    return fail(record, failure, kept, now, input.type === 'generation-failed' ? input.partial : null);
  const after: TurnRecord = { ...record, version: record.version + 1, failures: record.failures + 1 };
  const notBefore = now + limits.step_backoff_ms * 2 ** record.failures;
  return {
    record: after,
    // What was shown is on disk, whatever comes of the next try; that writes over it.
    writes: [
      ...kept,
      save(record, after),
      { kind: 'enqueue-step', payload: { session_id: record.session_id, turn_id: record.turn_id, step: record.step }, notBefore },
    ],
    next: { do: 'rest', outcome: 'queued' },
  };
}

function stopRequested(record: TurnRecord): Decision {
  if (isTerminal(record.status) || record.abort_requested) return rest(record, 'skipped');
  const after: TurnRecord = { ...record, version: record.version + 1, abort_requested: true };
  return { record: after, writes: [save(record, after)], next: { do: 'rest', outcome: 'queued' } };
}
