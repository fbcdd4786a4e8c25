import type { Write } from '../ports/journal.js';
import { type CallCheckpoint, isTerminal, type TurnRecord } from '../record/record.js';
import { nextStep, rest, save, withCall } from './advance.js';
import type { Decision, TurnInput } from './decision.js';
import { resultWrite, timedOut } from './results.js';

type Resolved = Extract<TurnInput, { type: 'resolved' }>;

/** Settles a pending call once (I9): a call that is unknown, done, or (to execute) not held is left alone. */
export function resolved(record: TurnRecord, input: Resolved): Decision {
  const call = record.calls.find((c) => c.id === input.call_id);
  if (isTerminal(record.status) || record.abort_requested || call === undefined || call.state !== 'pending') return rest(record, 'skipped');
  const isOver = call.expires_at !== undefined && call.expires_at <= input.now;
  if (input.answer.kind === 'execute') return isOver ? rest(record, 'skipped') : release(record, call); // a sweep will settle what is over
  const write = resultWrite(record, call.id, call.function_id, input.answer.result, input.now, call.annotations);
  return resume(record, withCall(record, { ...call, state: 'done' }), [write], input.now);
}

/** Pending calls whose time is over get a result that says so. */
export function expired(record: TurnRecord, now: number): Decision {
  if (isTerminal(record.status) || record.abort_requested) return rest(record, 'skipped');
  const writes: Write[] = [];
  const calls = record.calls.map((call): CallCheckpoint => {
    if (call.state !== 'pending' || call.expires_at === undefined || call.expires_at > now) return call;
    writes.push(resultWrite(record, call.id, call.function_id, timedOut(call.function_id), now, call.annotations));
    return { ...call, state: 'done' };
  });
  return writes.length === 0 ? rest(record, 'skipped') : resume(record, { ...record, calls }, writes, now);
}

/** A held call goes back into its step, after the hook that held it. */
function release(record: TurnRecord, call: CallCheckpoint): Decision {
  if (call.held_by === undefined || call.child !== undefined) return rest(record, 'skipped');
  const { expires_at: _, ...ready } = call;
  const released = withCall(record, { ...ready, state: 'ready' });
  if (record.status === 'awaiting_functions') return takeUp(record, released, []);
  const after: TurnRecord = { ...released, version: record.version + 1 };
  return { record: after, writes: [save(record, after)], next: { do: 'rest', outcome: 'skipped' } };
}

/** Queues the parked step again. */
function takeUp(before: TurnRecord, current: TurnRecord, writes: readonly Write[]): Decision {
  const { session_id, turn_id, step } = before;
  const after: TurnRecord = { ...current, version: before.version + 1, status: 'running' };
  return {
    record: after,
    writes: [...writes, save(before, after), { kind: 'enqueue-step', payload: { session_id, turn_id, step } }],
    next: { do: 'rest', outcome: 'queued' },
  };
}

/** Goes on when the last pending call is settled; a step that still runs goes on by itself. One in which a result was handed in sees to that first. */
function resume(before: TurnRecord, current: TurnRecord, writes: Write[], now: number): Decision {
  const open = current.calls.some((call) => call.state !== 'done');
  if (before.status === 'awaiting_functions' && !open) {
    const submitted = current.submission !== null || current.result_error !== null;
    return submitted ? takeUp(before, current, writes) : nextStep(before, current, writes, now);
  }
  const after: TurnRecord = { ...current, version: before.version + 1 };
  return { record: after, writes: [...writes, save(before, after)], next: { do: 'rest', outcome: 'parked' } };
}
