import { type AgentMessage, callsOf, type FunctionResultMessage, textOf } from '#libs/contracts';
import type { DiskEntry, DiskSession } from './disk.js';

const TERMINAL = { completed: 'done', cancelled: 'done', failed: 'error' } as const;

/** What of a session at rest breaks an invariant of the design, in words; nothing when all holds. */
export function sessionFaults(session: DiskSession): string[] {
  const faults = [...restFaults(session), ...chainFaults(session), ...assistantFaults(session), ...callFaults(session)];
  return faults.map((fault) => `${session.session_id}: ${fault}`);
}

/** The same of a session whose turn may be under way, as a crash leaves it. */
export function crashFaults(session: DiskSession): string[] {
  const faults = [...liveFaults(session), ...chainFaults(session), ...assistantFaults(session), ...callFaults(session)];
  return faults.map((fault) => `${session.session_id}: ${fault}`);
}

/** I8 and I11: a running turn has its step queued, a parked one has pending calls and no step, and one that is over is over everywhere. */
function liveFaults({ turn, status }: DiskSession): string[] {
  if (turn === null) return [];
  const { record, job_step, owner } = turn;
  const faults: string[] = [];
  if (turn.status !== record.status) faults.push(`the row says ${turn.status}, its record ${record.status}`);
  switch (record.status) {
    case 'running':
      if (job_step !== record.step) faults.push(`step ${record.step} is running, step ${job_step} queued`);
      if (status !== 'working') faults.push(`the turn is running, the session ${status}`);
      break;
    case 'awaiting_functions':
      if (job_step !== null || owner !== null) faults.push(`the turn is parked, step ${job_step} queued for ${owner}`);
      if (record.calls.every((call) => call.state !== 'pending')) faults.push('the turn is parked, but no call is pending');
      break;
    case 'completed':
    case 'cancelled':
    case 'failed':
      if (job_step !== null || owner !== null) faults.push(`the turn is over, step ${job_step} queued for ${owner}`);
      if (status !== TERMINAL[record.status]) faults.push(`the turn is ${record.status}, the session ${status}`);
      break;
    default: {
      const unknown: never = record.status;
      faults.push(`the turn is ${String(unknown)}`);
    }
  }
  return faults;
}

/** The record is terminal, the session says the same, and nothing is left to do. */
function restFaults({ turn, status, parked }: DiskSession): string[] {
  const faults: string[] = [];
  if (parked.length > 0)
    faults.push(`${parked.length} parked messages are left: ${parked.map((p) => JSON.stringify(textOf(p.message.content))).join(', ')}`);
  if (turn === null) return [...faults, 'there is no turn'];
  if (turn.status !== turn.record.status) faults.push(`the row says ${turn.status}, its record ${turn.record.status}`);
  if (turn.job_step !== null || turn.owner !== null) faults.push(`step ${turn.job_step} is queued for ${turn.owner}`);
  const expected = TERMINAL[turn.record.status as keyof typeof TERMINAL];
  if (expected === undefined) faults.push(`the turn is ${turn.record.status}`);
  else if (status !== expected) faults.push(`the turn is ${turn.record.status}, the session ${status}`);
  return faults;
}

/** The entries are one line from the root to the leaf, and are counted right. */
function chainFaults({ entries, leaf, branched, message_count }: DiskSession): string[] {
  const faults: string[] = [];
  if (branched) faults.push('the session is branched');
  for (const [index, entry] of entries.entries()) {
    const before = entries[index - 1]?.id ?? null;
    if (entry.parent !== before) faults.push(`entry ${entry.id} follows ${entry.parent}, not ${before}`);
  }
  if ((entries.at(-1)?.id ?? null) !== leaf) faults.push(`the leaf is ${leaf}, the last entry ${entries.at(-1)?.id}`);
  const messages = entries.filter((entry) => entry.message !== null).length;
  if (messages !== message_count) faults.push(`${messages} messages are stored, ${message_count} counted`);
  return faults;
}

/** I3: one assistant entry for a step, under its own id. */
function assistantFaults({ entries }: DiskSession): string[] {
  const seen = new Set<string>();
  const faults: string[] = [];
  for (const { id, message, turn_id } of entries) {
    if (message?.role !== 'assistant') continue;
    const step = /^e_(.+)_(\d+)_assistant$/.exec(id);
    if (step === null || step[1] !== turn_id) faults.push(`assistant entry ${id} of turn ${turn_id} has no step`);
    if (seen.has(id)) faults.push(`assistant entry ${id} is there twice`);
    seen.add(id);
  }
  return faults;
}

/** I5: each call has one result, before the next generation or the end of the turn; there is no result without a call. */
function callFaults({ entries, turn }: DiskSession): string[] {
  const faults: string[] = [];
  const open = new Set<string>();
  const answered = new Set<string>();
  for (const { message } of entries) {
    if (message?.role === 'assistant') {
      if (open.size > 0) faults.push(`calls ${[...open].join(', ')} had no result before the next generation`);
      for (const call of callsOf(message.content)) {
        if (open.has(call.id) || answered.has(call.id)) faults.push(`call id ${call.id} is there twice`);
        open.add(call.id);
      }
    }
    if (message?.role !== 'function_result') continue;
    const id = message.function_call_id;
    if (open.delete(id)) answered.add(id);
    else faults.push(answered.has(id) ? `call ${id} has two results` : `result of ${id} has no call`);
  }
  const isLive = turn?.record.status === 'running' || turn?.record.status === 'awaiting_functions';
  if (open.size > 0 && !isLive) faults.push(`calls ${[...open].join(', ')} have no result`);
  return faults;
}

/** The results of a session, by call id. */
export function resultsOf(entries: readonly DiskEntry[]): Map<string, FunctionResultMessage> {
  const results = new Map<string, FunctionResultMessage>();
  for (const { message } of entries) if (message?.role === 'function_result') results.set(message.function_call_id, message);
  return results;
}

/** The code that the loop put into a result that it made up; undefined for a result of the function itself. */
export function codeOf(result: FunctionResultMessage): string | undefined {
  const { details } = result;
  const code = typeof details === 'object' && details !== null && !Array.isArray(details) ? details['error'] : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The texts of the user messages, in order. */
export const userTexts = (entries: readonly DiskEntry[]): string[] =>
  entries.flatMap(({ message }) => (message?.role === 'user' ? [textOf(message.content)] : []));

/** What of a request no provider would take; nothing when it is valid. */
export function requestFaults(messages: readonly AgentMessage[]): string[] {
  const faults: string[] = [];
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `message ${index} (${message.role})`;
    if (message.role === 'custom') faults.push(`${at} may not be sent to a model`);
    if (message.content.length === 0) faults.push(`${at} is empty`);
    if (message.content.some((block) => block.type === 'text' && block.text.trim() === '')) faults.push(`${at} holds an empty text block`);
    if (message.role === 'function_result') {
      if (open[0] !== message.function_call_id) faults.push(`${at} answers ${message.function_call_id}, open are [${open.join(', ')}]`);
      open = open.slice(1);
      continue;
    }
    if (open.length > 0) faults.push(`${at} comes before the results of ${open.join(', ')}`);
    open = message.role === 'assistant' ? callsOf(message.content).map((call) => call.id) : [];
  }
  if (open.length > 0) faults.push(`the results of ${open.join(', ')} are missing`);
  if (messages[0]?.role !== 'user') faults.push(`the first message is of ${messages[0]?.role}`);
  const last = messages.at(-1)?.role;
  if (last !== 'user' && last !== 'function_result') faults.push(`the last message is of ${last}`);
  return faults;
}
