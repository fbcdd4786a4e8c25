import type { StatusReport } from '#libs/contracts';
import type { Journal } from '../ports/journal.js';
import { isTerminal } from '../record/record.js';

/** The report of a session's latest turn; null when it has none. */
export async function status(journal: Journal, sessionId: string): Promise<StatusReport | null> {
  const record = await journal.load(sessionId);
  if (record === null) return null;
  return {
    session_id: record.session_id,
    turn_id: record.turn_id,
    status: record.status,
    step: record.step,
    turn_count: record.turn_count,
    max_turns: record.options.max_turns,
    depth: record.depth,
    pending_function_calls: record.calls.filter((call) => call.state === 'pending').map((call) => call.id),
    children: record.children,
    ...(isTerminal(record.status) ? { result: record.result, result_error: record.result_error } : {}),
  };
}
