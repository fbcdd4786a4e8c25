import { callsOf, textOf } from '#libs/contracts';
import type { Disk, DiskSession } from '../support/disk.js';
import { codeOf, resultsOf } from '../support/invariants.js';
import type { Known } from './check.js';
import { ANSWER } from './model.js';
import type { CountLine, EventLine, JobLine } from './protocol.js';

/** Codes of results that say that a target was not called, or that nobody knows. */
const NOT_COUNTED = new Set(['policy_denied', 'outcome_unknown', 'stopped', 'function_not_found', 'pending_timeout']);
/** Those among them after which it certainly was not called. */
const NEVER_CALLED = new Set(['policy_denied', 'pending_timeout']);

/** I2: an acknowledged send is stored once, in the transcript or waiting for the turn; one that was not, at most once. */
export function sendFaults(disk: Disk, { tried, acked }: Known): string[] {
  const faults: string[] = [];
  const texts = new Map<string, number>();
  for (const { session_id, entries, parked } of disk.sessions) {
    for (const { message } of [...entries, ...parked]) {
      if (message?.role !== 'user' && message?.role !== 'custom') continue;
      const key = `${session_id}\n${textOf(message.content)}`;
      texts.set(key, (texts.get(key) ?? 0) + 1);
    }
  }
  for (const { session_id, text, key } of new Map(tried.map((send) => [send.key, send])).values()) {
    const count = texts.get(`${session_id}\n${text}`) ?? 0;
    if (count > 1) faults.push(`${session_id}: message ${JSON.stringify(text)} is there ${count} times`);
    if (count === 0 && acked.has(key)) faults.push(`${session_id}: acknowledged message ${JSON.stringify(text)} is lost`);
  }
  return faults;
}

/** I10: a key is answered with the same turn each time. */
export const repeatFaults = ({ acked }: Known): string[] =>
  [...acked].flatMap(([key, turns]) => (turns.size > 1 ? [`key ${key} was answered with the turns ${[...turns].join(' and ')}`] : []));

/** I4 and I7: a target is invoked at most once, never against the policy, and each result tells the truth about it. */
export function countFaults(disk: Disk, counts: readonly CountLine[], calls: 'settled' | 'open' = 'settled'): string[] {
  const faults: string[] = [];
  const byCall = new Map<string, number>();
  for (const { call } of counts) byCall.set(call, (byCall.get(call) ?? 0) + 1);
  for (const [call, count] of byCall) if (count > 1) faults.push(`call ${call} was invoked ${count} times`);
  for (const session of disk.sessions) {
    for (const [id, result] of resultsOf(session.entries)) {
      if (!result.function_id.startsWith('probe::')) continue;
      const count = byCall.get(`${session.session_id}/${id}`) ?? 0;
      const code = codeOf(result);
      // A result may be newer than what was read of the invocations, while another process goes on.
      if (count === 0 && calls === 'settled' && !(result.is_error && NOT_COUNTED.has(code ?? '')))
        faults.push(`${session.session_id}: ${id} was never invoked, its result says ${JSON.stringify(result.content)}`);
      if (count > 0 && NEVER_CALLED.has(code ?? '')) faults.push(`${session.session_id}: ${id} was invoked, its result says ${code}`);
    }
  }
  if (calls === 'open') return faults;
  const known = new Set(disk.sessions.flatMap((s) => [...resultsOf(s.entries).keys()].map((id) => `${s.session_id}/${id}`)));
  for (const call of byCall.keys()) if (!known.has(call)) faults.push(`call ${call} was invoked, but has no result`);
  return faults;
}

/** The last message for the model before the end of a completed turn has an answer after it. */
export function answerFaults({ session_id, entries, turn }: DiskSession): string[] {
  if (turn?.record.status !== 'completed') return [];
  const last = entries.findLast(({ message }) => message !== null && message.role !== 'custom')?.message;
  if (last == null) return []; // nothing was ever said to the model
  if (last.role === 'function_result' && last.function_id === 'submit_result') return [];
  if (last.role !== 'assistant') return [`${session_id}: the turn is completed, but the last message is of ${last.role}`];
  return callsOf(last.content).length > 0 ? [`${session_id}: the turn is completed, but its last message has calls`] : [];
}

/** A completed turn hands over what its output contract asks for, or says that it does not. */
export function contractFaults({ session_id, turn }: DiskSession): string[] {
  if (turn?.record.status !== 'completed' || turn.record.options.output.type !== 'json') return [];
  const { result, result_error, reason } = turn.record;
  const right = typeof result === 'object' && result !== null && !Array.isArray(result) && result['answer'] === ANSWER;
  if (reason === 'nothing_to_reply' || (reason === 'invalid_result' && result_error !== null)) return [];
  return right && result_error === null
    ? []
    : [`${session_id}: the turn hands over ${JSON.stringify(result)} (${result_error}, ${reason})`];
}

/** I6: the end of each turn is told at least once, and only with its true status; so is its start. */
export function eventFaults(disk: Disk, events: readonly EventLine[]): string[] {
  const faults: string[] = [];
  for (const { session_id, entries, turn } of disk.sessions) {
    const turnIds = new Set(entries.flatMap((entry) => entry.turn_id ?? []));
    if (turn !== null) turnIds.add(turn.record.turn_id);
    for (const turn_id of turnIds) {
      const of = (type: string): EventLine[] => events.filter((event) => event.turn_id === turn_id && event.type === type);
      if (of('harness::turn-started').length === 0) faults.push(`${session_id}: the start of ${turn_id} was never told`);
      if (of('harness::turn-completed').length === 0) faults.push(`${session_id}: the end of ${turn_id} was never told`);
    }
  }
  return [...faults, ...endFaults(disk, events)];
}

/** I6: an end is told only when it is on disk, and no turn ends in two ways. */
export function endFaults(disk: Disk, events: readonly EventLine[]): string[] {
  const faults: string[] = [];
  const told = new Map<string, string | undefined>();
  for (const { type, turn_id, session_id, status } of events) {
    if (type !== 'harness::turn-completed') continue;
    if (told.has(turn_id) && told.get(turn_id) !== status) faults.push(`${session_id}: ${turn_id} ended in two ways`);
    told.set(turn_id, status);
  }
  for (const { session_id, turn } of disk.sessions) {
    if (turn === null || !told.has(turn.record.turn_id)) continue;
    const { turn_id, status } = turn.record;
    if (told.get(turn_id) !== status) faults.push(`${session_id}: ${turn_id} is ${status}, the event says ${told.get(turn_id)}`);
  }
  return faults;
}

/** I12: a turn whose stop was acknowledged is cancelled. */
export const stopFaults = (disk: Disk, stopped: ReadonlySet<string>): string[] =>
  disk.sessions.flatMap(({ session_id, turn }) =>
    stopped.has(session_id) && turn?.record.status !== 'cancelled'
      ? [`${session_id}: the stop was acknowledged, the turn is ${turn?.record.status}`]
      : [],
  );

/** A call of `harness::spawn` has one child, whose end is the call's result. */
export function childFaults({ sessions }: Disk): string[] {
  const faults: string[] = [];
  const byCall = new Map<string, DiskSession[]>();
  for (const session of sessions) {
    const parent = session.turn?.record.parent;
    if (parent == null) continue;
    const key = `${parent.session_id}/${parent.function_call_id}`;
    byCall.set(key, [...(byCall.get(key) ?? []), session]);
  }
  for (const { session_id, entries } of sessions) {
    for (const [id, result] of resultsOf(entries)) {
      if (result.function_id !== 'harness::spawn') continue;
      const children = byCall.get(`${session_id}/${id}`) ?? [];
      const [child] = children;
      if (children.length > 1) faults.push(`${session_id}: ${id} has ${children.length} children`);
      if (child === undefined && !result.is_error) faults.push(`${session_id}: the result of ${id} tells of a child, there is none`);
      if (child?.turn?.record.status === 'completed' && result.is_error && codeOf(result) !== 'stopped')
        faults.push(`${session_id}: the end of the child of ${id} did not reach it: ${JSON.stringify(result.content)}`);
    }
  }
  return faults;
}

/** I4: a call whose function started a sub-agent of its own has started one, not two; and at least one when it says so. */
export function detachFaults({ sessions }: Disk): string[] {
  const started = new Map<string, number>();
  for (const { entries } of sessions) {
    for (const { message } of entries) {
      if (message?.role !== 'user') continue;
      const call = / detached by (\S+)$/.exec(textOf(message.content))?.[1];
      if (call !== undefined) started.set(call, (started.get(call) ?? 0) + 1);
    }
  }
  const faults = [...started].flatMap(([call, count]) => (count > 1 ? [`call ${call} has started ${count} sub-agents`] : []));
  for (const { session_id, entries } of sessions) {
    for (const [id, result] of resultsOf(entries)) {
      if (result.function_id === 'probe::detach' && !result.is_error && !started.has(`${session_id}/${id}`))
        faults.push(`${session_id}: ${id} says that it has started a sub-agent, there is none`);
    }
  }
  return faults;
}

/** A job that was acknowledged has run; those of a group that were put in one after the other first ran in that order. */
export function jobFaults(ran: readonly JobLine[], acknowledged: readonly JobLine[]): string[] {
  const faults: string[] = [];
  const name = ({ group, series, n }: JobLine): string => `job ${n} of ${group}, series ${series}`;
  const seen = new Set<string>();
  const last = new Map<string, number>();
  for (const job of ran) {
    if (seen.has(name(job))) continue;
    seen.add(name(job));
    const line = `${job.group} ${job.series}`;
    if (job.n < (last.get(line) ?? -1)) faults.push(`${name(job)} ran after job ${last.get(line)}`);
    last.set(line, job.n);
  }
  for (const job of acknowledged) if (!seen.has(name(job))) faults.push(`${name(job)} was acknowledged and never ran`);
  return faults;
}
