import { callsOf, type Entry } from '#libs/contracts';
import { compilePolicy } from '../../policy/policy.js';
import { isTerminal, type TurnRecord } from '../../record/record.js';
import type { PlannedCall } from '../calls.js';
import type { Committed, SessionState } from './store.js';

type Violate = (invariant: string, what: string) => void;

/** What a commit must and must not do, whatever the history before it (I1, I6, I8, I9, I11, I12). */
export function checkCommit({ session, before, after, writes, repeated }: Committed, violate: Violate): void {
  const saved = writes.find((write) => write.kind === 'save-record');
  const completed = writes.filter((write) => write.kind === 'emit' && write.event.type === 'harness::turn-completed');
  const queued = writes.filter((write) => write.kind === 'enqueue-step');
  if (after?.status === 'awaiting_functions' && session.job !== null) violate('I8', `step ${session.job.step} is queued for a parked turn`);
  if (saved === undefined) {
    if (completed.length > 0) violate('I6', 'turn-completed without a record');
    if (queued.length > 0) violate('I11', 'a step was queued without a record');
    return;
  }
  const { record } = saved;
  const sameTurn = before?.turn_id === record.turn_id;
  if (sameTurn) for (const id of repeated) violate('I9', `${id} was written twice`);
  if (before !== null && !isTerminal(before.status) && !sameTurn) violate('I1', `${record.turn_id} began over the live ${before.turn_id}`);
  if (before !== null && isTerminal(before.status) && sameTurn) violate('I6', `the terminal record of ${record.turn_id} changed`);
  if (completed.length !== (isTerminal(record.status) ? 1 : 0))
    violate('I6', `${completed.length} turn-completed with a record that is ${record.status}`);
  const told = writes.filter((write) => write.kind === 'emit' && write.event.type === 'harness::child-ended').length;
  if (told !== (isTerminal(record.status) && record.parent !== null ? 1 : 0))
    violate('child', `${told} ends of a child are told with ${record.turn_id}, which is ${record.status}`);
  if (sameTurn && writes.some((write) => write.kind === 'emit' && write.event.type === 'harness::turn-started'))
    violate('child', `${record.turn_id} began twice`);
  const grew = sameTurn ? record.step - before.step : 0;
  if (grew < 0 || grew > 1) violate('I11', `step ${before?.step} became ${record.step}`);
  const wanted = isTerminal(record.status) || record.status === 'awaiting_functions' ? 'none' : grew === 1 || !sameTurn ? 'one' : 'any';
  if (wanted === 'one' && queued.length !== 1) violate('I11', `step ${record.step} was saved and ${queued.length} were queued`);
  if (wanted === 'none' && queued.length !== 0) violate('I11', `a step was queued for a turn that is ${record.status}`);
  if (queued.some((write) => write.payload.step !== record.step || write.payload.turn_id !== record.turn_id))
    violate('I11', 'another step was queued than saved');
  if (sameTurn && before.abort_requested) {
    const newly = record.calls.filter(
      (call) => (call.state === 'triggered' || call.child !== undefined) && before.calls.find((c) => c.id === call.id)?.state === 'ready',
    );
    for (const call of newly) violate('I12', `${call.function_id} was begun after the stop`);
    if (grew > 0) violate('I12', `step ${record.step} was queued after the stop`);
  }
  if (after !== record && after !== null) violate('I1', 'the stored record is not the saved one');
}

/** Once a stop is answered, nothing of the turn or of a turn below it begins (I12). */
export function checkStopped({ before, after, writes }: Committed, isStopped: (turnId: string) => boolean, violate: Violate): void {
  if (after === null || after === before || !isStopped(after.turn_id)) return;
  if (before?.turn_id !== after.turn_id) violate('I12', `${after.turn_id} began below a stopped turn`);
  else if (after.step > before.step || writes.some((write) => write.kind === 'enqueue-step'))
    violate('I12', `step ${after.step} was queued`);
  const begun = after.calls.filter((call) => call.state !== 'done' && call.state !== before?.calls.find((c) => c.id === call.id)?.state);
  for (const call of begun) violate('I12', `${call.function_id} of ${after.turn_id} is ${call.state} after a stop of it or of its parent`);
}

/** Every call has exactly one result after it, and every result its call (I5). `skip` is being generated again. */
export function checkResults(entries: readonly Entry[], when: string, violate: Violate, skip?: string): void {
  const calls = new Map<string, number>();
  for (const entry of entries) {
    if (entry.kind !== 'message' || entry.id === skip) continue;
    if (entry.message.role === 'assistant') {
      for (const { id } of callsOf(entry.message.content)) {
        if (calls.has(id)) violate('ids', `the call id ${JSON.stringify(id)} is there twice`);
        calls.set(id, 0);
      }
    } else if (entry.message.role === 'function_result') {
      const count = calls.get(entry.message.function_call_id);
      if (count === undefined) violate('I5', `a result of ${entry.message.function_call_id} without its call, ${when}`);
      else calls.set(entry.message.function_call_id, count + 1);
    }
  }
  for (const [id, count] of calls) if (count !== 1) violate('I5', `${count} results of call ${id}, ${when}`);
}

/** Each generate step has at most one assistant entry, under its id (I3). */
export function checkAssistants(entries: readonly Entry[], generated: ReadonlySet<string>, violate: Violate): void {
  const ids = entries.filter((entry) => entry.kind === 'message' && entry.message.role === 'assistant').map((entry) => entry.id);
  for (const id of ids) if (!generated.has(id)) violate('I3', `assistant entry ${id} belongs to no generation`);
  if (new Set(ids).size !== ids.length) violate('I3', 'two assistant entries of one step');
}

/** What was accepted is in the transcript exactly once, in the order of acceptance (I2). */
export function checkMessages(entries: readonly Entry[], accepted: readonly string[], violate: Violate): void {
  const users = entries
    .filter((entry) => entry.kind === 'message' && entry.message.role === 'user' && entry.origin?.['nudge'] === undefined)
    .map((entry) => entry.id);
  if (JSON.stringify(users) !== JSON.stringify(accepted)) violate('I2', `accepted ${accepted.join()}, stored ${users.join()}`);
}

/** The policy lets the call through, and its checkpoint was stored before (I4, I7). */
export function checkInvocation(record: TurnRecord, stored: TurnRecord | null, call: PlannedCall, times: number, violate: Violate): void {
  if (times > 1) violate('I4', `call ${call.id} of ${record.turn_id} was invoked ${times} times`);
  const refusal = compilePolicy(record.options.functions).refusal(call.function_id);
  if (refusal !== null) violate('I7', refusal);
  const checkpoint = record.calls.find((c) => c.id === call.id);
  if (checkpoint?.state !== 'triggered' || checkpoint.function_id !== call.function_id)
    violate('I4', `call ${call.id} was invoked without its checkpoint`);
  if (stored === null || stored.version < record.version) violate('I4', `call ${call.id} was invoked before its checkpoint was stored`);
}

/** A turn that completes by itself has no message that the model did not see, parked or in the transcript. */
export function checkSeen({ record, entries, parked }: SessionState, seen: ReadonlySet<string>, violate: Violate): void {
  if (record?.status !== 'completed' || record.reason === 'max_turns') return;
  const messages = entries.filter((entry) => entry.kind === 'message' && entry.message.role === 'user').map((entry) => entry.id);
  for (const id of [...messages, ...parked.map((message) => message.entry_id)]) {
    if (!seen.has(id)) violate('seen', `the turn completed over ${id}`);
  }
}
