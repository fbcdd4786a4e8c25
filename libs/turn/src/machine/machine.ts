import { callsOf, entryIds, textOf, type AssistantMessage, type Usage } from '#libs/contracts';
import type { Write } from '../ports/journal.js';
import { isTerminal, type CallCheckpoint, type TurnRecord } from '../record/record.js';
import type { PlannedCall } from './calls.js';
import type { Decision, TurnInput } from './decision.js';
import { cancel, complete, completeAtLimit, fail, partialWrite } from './finish.js';
import { refusedResult, resultWrite, unknownOutcome } from './results.js';

/**
 * The turn machine: what to write and what to do next, given the record and what just happened. It does no I/O, reads
 * no clock and makes no id. The writes of a decision are one commit; its `save-record` names the version that it
 * replaces, so that of two executors of the same step only one goes on.
 */
export function decide(record: TurnRecord, input: TurnInput): Decision {
  switch (input.type) {
    case 'begin':
      return begin(record, input);
    case 'generated':
      return generated(record, input);
    case 'generation-failed':
      return generationFailed(record, input);
    case 'call-returned':
      return callReturned(record, input);
    case 'step-failed':
      return retryOrFail(record, input, [], input.limits.step_max_retries);
    case 'stop-requested':
      return stopRequested(record);
    case 'stopped':
      return isTerminal(record.status) ? rest(record, 'skipped') : cancel(record, input);
    case 'nothing-to-reply':
      return input.waiting ? nextStep(record, record, [], input.now) : complete(record, { result: null, result_error: null }, 'nothing_to_reply', [], input.now);
    default: {
      const unknown: never = input;
      throw new Error(`unknown input ${JSON.stringify(unknown)}`);
    }
  }
}

type Input<T extends TurnInput['type']> = Extract<TurnInput, { type: T }>;

const rest = (record: TurnRecord, outcome: 'skipped' | 'queued' | 'parked'): Decision => ({ record, writes: [], next: { do: 'rest', outcome } });
const save = (before: TurnRecord, after: TurnRecord): Write => ({ kind: 'save-record', record: after, expectedVersion: before.version });

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
    ...parked.map((p): Write => ({
      kind: 'append-entry',
      session_id: record.session_id,
      entry: { entry_id: p.entry_id, timestamp: p.timestamp, origin: { turn_id: record.turn_id }, message: p.message },
    })),
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
  return advance(record, { ...record, calls }, input.plan, writes, input.now, input.parked.length > 0);
}

function generated(record: TurnRecord, input: Input<'generated'>): Decision {
  const { message, plan, now } = input;
  const before: Write[] = [assistantWrite(record, message, now)];
  const text = textOf(message.content);
  const counted: TurnRecord = {
    ...record,
    turn_count: record.turn_count + 1,
    call_count: record.call_count + plan.length,
    totals: addUsage(record.totals, message.usage ?? null),
    result: text === '' ? record.result : text,
    failures: 0,
  };
  if (plan.length > 0) {
    const calls = plan.map((call): CallCheckpoint => ({ id: call.id, function_id: call.function_id, state: 'ready' }));
    return advance(record, { ...counted, phase: 'calls', calls }, plan, before, now, input.waiting);
  }
  if (!input.waiting) return complete(counted, input.deliverable, message.stop_reason === 'length' ? 'length' : null, before, now);
  return nextStep(record, counted, before, now);
}

const assistantWrite = (record: TurnRecord, message: AssistantMessage, now: number): Write => ({
  kind: 'put-entry',
  session_id: record.session_id,
  entry: { entry_id: entryIds.assistant(record.turn_id, record.step), timestamp: now, origin: { turn_id: record.turn_id }, message },
});

function callReturned(record: TurnRecord, input: Input<'call-returned'>): Decision {
  const call = record.calls.find((c) => c.id === input.call_id);
  if (call === undefined || call.state === 'done') return rest(record, 'skipped');
  const calls = record.calls.map((c): CallCheckpoint => (c.id === input.call_id ? { ...c, state: 'done' } : c));
  const result = resultWrite(record, call.id, call.function_id, input.result, input.now, input.annotations);
  return advance(record, { ...record, calls }, input.plan, [result], input.now, input.waiting);
}

/**
 * Goes on after a change of the calls: refused calls are answered, the next open one is marked `triggered` before it is
 * invoked; with none left the turn parks for its pending calls, or the next step is queued.
 */
function advance(before: TurnRecord, current: TurnRecord, plan: readonly PlannedCall[], writes: Write[], now: number, waiting: boolean): Decision {
  const calls = [...current.calls];
  for (const [index, call] of calls.entries()) {
    if (call.state !== 'ready') continue;
    const planned = plan.find((p) => p.id === call.id);
    const refusal = planned === undefined ? LOST_CALL : planned.refusal;
    if (refusal !== null || planned === undefined) {
      writes.push(resultWrite(current, call.id, call.function_id, refusedResult(call.function_id, refusal ?? LOST_CALL), now));
      calls[index] = { ...call, state: 'done' };
      continue;
    }
    calls[index] = { ...call, state: 'triggered' };
    const after: TurnRecord = { ...current, calls, version: before.version + 1 };
    return { record: after, writes: [...writes, save(before, after)], next: { do: 'invoke', call: planned } };
  }
  const settled: TurnRecord = { ...current, calls };
  if (calls.some((call) => call.state === 'pending')) {
    const after: TurnRecord = { ...settled, status: 'awaiting_functions', version: before.version + 1 };
    return {
      record: after,
      writes: [...writes, save(before, after), { kind: 'settle-step', session_id: before.session_id }],
      next: { do: 'rest', outcome: 'parked' },
    };
  }
  if (settled.turn_count >= settled.options.max_turns && !waiting) return completeAtLimit({ ...settled, version: before.version }, writes, now);
  return nextStep(before, settled, writes, now);
}

const LOST_CALL = { code: 'invalid_arguments', message: 'This call was not run: its message was replaced.' } as const;

/** Queues the next step in the commit that ends this one (I11). */
function nextStep(before: TurnRecord, current: TurnRecord, writes: Write[], now: number): Decision {
  if (current.turn_count >= current.options.max_turns) return completeAtLimit({ ...current, version: before.version }, writes, now);
  const after: TurnRecord = { ...current, version: before.version + 1, step: before.step + 1, phase: 'generate', calls: [], failures: 0 };
  return {
    record: after,
    writes: [...writes, save(before, after), { kind: 'enqueue-step', payload: { session_id: after.session_id, turn_id: after.turn_id, step: after.step } }],
    next: { do: 'rest', outcome: 'queued' },
  };
}

function generationFailed(record: TurnRecord, input: Input<'generation-failed'>): Decision {
  const { partial, failure, limits } = input;
  const hasText = partial !== null && textOf(partial.content).trim() !== '';
  const kept = partial !== null && partial.content.length > 0 ? [partialWrite(record, partial, 'error', input.now)] : [];
  const counted = partial === null ? record : { ...record, totals: addUsage(record.totals, partial.usage ?? null) };
  // The router has retried what failed before its first frame; a stream that broke after some text is done again here.
  return retryOrFail(counted, input, kept, hasText ? limits.max_transient_resumes : 0);
}

function retryOrFail(
  record: TurnRecord,
  input: Input<'generation-failed'> | Input<'step-failed'>,
  kept: Write[],
  tries: number,
): Decision {
  const { failure, limits, now } = input;
  if (!failure.retryable || record.failures >= tries) return fail(record, failure, kept, now);
  const after: TurnRecord = { ...record, version: record.version + 1, failures: record.failures + 1 };
  const notBefore = now + limits.step_backoff_ms * 2 ** record.failures;
  return {
    record: after,
    writes: [save(record, after), { kind: 'enqueue-step', payload: { session_id: record.session_id, turn_id: record.turn_id, step: record.step }, notBefore }],
    next: { do: 'rest', outcome: 'queued' },
  };
}

function stopRequested(record: TurnRecord): Decision {
  if (isTerminal(record.status) || record.abort_requested) return rest(record, 'skipped');
  const after: TurnRecord = { ...record, version: record.version + 1, abort_requested: true };
  return { record: after, writes: [save(record, after)], next: { do: 'rest', outcome: 'queued' } };
}

/** Adds the usage of one generation to the sums of its turn. */
export function addUsage(totals: TurnRecord['totals'], usage: Usage | null): TurnRecord['totals'] {
  if (usage === null) return totals;
  const cost = usage.cost_usd ?? null;
  return {
    input_tokens: totals.input_tokens + (usage.input ?? 0),
    output_tokens: totals.output_tokens + (usage.output ?? 0),
    cache_read_tokens: totals.cache_read_tokens + (usage.cache_read ?? 0),
    cache_write_tokens: totals.cache_write_tokens + (usage.cache_write ?? 0),
    cost_usd: cost === null ? totals.cost_usd : (totals.cost_usd ?? 0) + cost,
  };
}

/** True when an assistant message asks for something to be run. */
export const hasCalls = (message: AssistantMessage): boolean => callsOf(message.content).length > 0;
