import { callsOf } from '#libs/contracts';
import { type Disk, type DiskSession, jsonLines, readDisk } from '../support/disk.js';
import { codeOf, resultsOf, sessionFaults, userTexts } from '../support/invariants.js';
import { type CountLine, countsFile, type EventLine, eventsFile, type PlannedSend } from './protocol.js';

/** What the parent knows: every send that was tried, and the keys of those that were acknowledged. */
export interface Known {
  tried: readonly PlannedSend[];
  acked: ReadonlySet<string>;
  /** Sessions whose stop was acknowledged: their turn at that time is cancelled. */
  stopped?: ReadonlySet<string>;
}

/** Codes of results that say that a target was not called, or that nobody knows. */
const NOT_COUNTED = new Set(['policy_denied', 'outcome_unknown', 'stopped', 'function_not_found']);

/** Checks a data folder at rest from what is on disk alone; says what is broken. */
export function checkDisk(dataDir: string, known: Known): string[] {
  const disk = readDisk(dataDir);
  const counts = jsonLines<CountLine>(countsFile(dataDir));
  const events = jsonLines<EventLine>(eventsFile(dataDir));
  return [
    ...(disk.integrity === 'ok' ? [] : [`the integrity check says ${disk.integrity}`]),
    ...disk.sessions.flatMap(sessionFaults),
    ...disk.sessions.flatMap(answerFaults),
    ...sendFaults(disk, known),
    ...countFaults(disk, counts),
    ...eventFaults(disk, events),
    ...stopFaults(disk, known.stopped ?? new Set()),
    ...childFaults(disk),
  ];
}

/** I2: an acknowledged send is in the transcript once, one that was not at most once. */
function sendFaults(disk: Disk, { tried, acked }: Known): string[] {
  const faults: string[] = [];
  const texts = new Map<string, number>();
  for (const session of disk.sessions) {
    for (const text of userTexts(session.entries)) {
      const key = `${session.session_id}\n${text}`;
      texts.set(key, (texts.get(key) ?? 0) + 1);
    }
  }
  for (const { session_id, text, key } of tried) {
    const count = texts.get(`${session_id}\n${text}`) ?? 0;
    if (count > 1) faults.push(`${session_id}: message ${JSON.stringify(text)} is there ${count} times`);
    if (count === 0 && acked.has(key)) faults.push(`${session_id}: acknowledged message ${JSON.stringify(text)} is lost`);
  }
  return faults;
}

/** I4 and I7: a target is invoked at most once, never against the policy, and each result tells the truth about it. */
function countFaults(disk: Disk, counts: readonly CountLine[]): string[] {
  const faults: string[] = [];
  const byCall = new Map<string, number>();
  for (const { call } of counts) byCall.set(call, (byCall.get(call) ?? 0) + 1);
  for (const [call, count] of byCall) if (count > 1) faults.push(`call ${call} was invoked ${count} times`);
  for (const session of disk.sessions) {
    for (const [id, result] of resultsOf(session.entries)) {
      if (!result.function_id.startsWith('probe::')) continue;
      const count = byCall.get(`${session.session_id}/${id}`) ?? 0;
      const code = codeOf(result);
      if (count === 0 && !(result.is_error && NOT_COUNTED.has(code ?? '')))
        faults.push(`${session.session_id}: ${id} was never invoked, its result says ${JSON.stringify(result.content)}`);
      if (count > 0 && code === 'policy_denied') faults.push(`${session.session_id}: ${id} was invoked against the policy`);
    }
  }
  const known = new Set(disk.sessions.flatMap((s) => [...resultsOf(s.entries).keys()].map((id) => `${s.session_id}/${id}`)));
  for (const call of byCall.keys()) if (!known.has(call)) faults.push(`call ${call} was invoked, but has no result`);
  return faults;
}

/** The last user message before the end of a completed turn has an answer after it. */
function answerFaults({ session_id, entries, turn }: DiskSession): string[] {
  if (turn?.record.status !== 'completed') return [];
  const last = entries.findLast((entry) => entry.message !== null)?.message;
  if (last?.role !== 'assistant') return [`${session_id}: the turn is completed, but the last message is of ${last?.role}`];
  return callsOf(last.content).length > 0 ? [`${session_id}: the turn is completed, but its last message has calls`] : [];
}

/** I6: the end of each turn is told at least once, and only with its true status; so is its start. */
function eventFaults(disk: Disk, events: readonly EventLine[]): string[] {
  const faults: string[] = [];
  for (const { session_id, entries, turn } of disk.sessions) {
    const turnIds = new Set(entries.flatMap((entry) => entry.turn_id ?? []));
    if (turn !== null) turnIds.add(turn.record.turn_id);
    for (const turn_id of turnIds) {
      const of = (type: string): EventLine[] => events.filter((event) => event.turn_id === turn_id && event.type === type);
      if (of('harness::turn-started').length === 0) faults.push(`${session_id}: the start of ${turn_id} was never told`);
      const ends = of('harness::turn-completed');
      if (ends.length === 0) faults.push(`${session_id}: the end of ${turn_id} was never told`);
      if (new Set(ends.map((event) => event.status)).size > 1) faults.push(`${session_id}: ${turn_id} ended in two ways`);
      if (turn_id === turn?.record.turn_id && ends.some((event) => event.status !== turn.record.status))
        faults.push(`${session_id}: ${turn_id} is ${turn.record.status}, the event says otherwise`);
    }
  }
  return faults;
}

/** I12: a turn whose stop was acknowledged is cancelled. */
const stopFaults = (disk: Disk, stopped: ReadonlySet<string>): string[] =>
  disk.sessions.flatMap(({ session_id, turn }) =>
    stopped.has(session_id) && turn?.record.status !== 'cancelled'
      ? [`${session_id}: the stop was acknowledged, the turn is ${turn?.record.status}`]
      : [],
  );

/** A call has one child, whose end is the call's result. */
function childFaults({ sessions }: Disk): string[] {
  const faults: string[] = [];
  const children = sessions.filter((session) => session.turn?.record.parent !== null);
  for (const { session_id, turn } of children) {
    const parent = turn?.record.parent;
    const siblings = children.filter(
      (other) =>
        other.turn?.record.parent?.function_call_id === parent?.function_call_id &&
        other.turn?.record.parent?.session_id === parent?.session_id,
    );
    if (siblings.length !== 1) faults.push(`${session_id}: its call has ${siblings.length} children`);
    const session = sessions.find((other) => other.session_id === parent?.session_id);
    const result = resultsOf(session?.entries ?? []).get(parent?.function_call_id ?? '');
    if (result === undefined || (turn?.record.status === 'completed' && result.is_error))
      faults.push(`${session_id}: its end did not reach its parent: ${JSON.stringify(result?.content)}`);
  }
  for (const { session_id, entries } of sessions) {
    const spawned = entries.filter(
      ({ message }) => message?.role === 'function_result' && message.function_id === 'harness::spawn' && !message.is_error,
    ).length;
    const own = children.filter((child) => child.turn?.record.parent?.session_id === session_id).length;
    if (spawned !== own) faults.push(`${session_id}: ${spawned} calls tell of a child, ${own} are there`);
  }
  return faults;
}
