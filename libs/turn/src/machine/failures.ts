import type { Write } from '../ports/journal.js';
import type { Decision, TurnInput } from './decision.js';

/**
 * Marks the record of a turn in which something has failed: a call, a try of a step, or something below a sub-agent's call. The mark
 * is saved with what it tells of, so it is there whichever process ends the turn. What a stop gives up has not failed.
 */
export function noteFailure(decision: Decision, input: TurnInput): Decision {
  const { record, writes } = decision;
  if (record.had_failure === true || record.status === 'cancelled' || !hasFailed(writes, input)) return decision;
  const marked = { ...record, had_failure: true as const };
  const isOwn = (write: Write): boolean => write.kind === 'save-record' && write.record === record;
  if (!writes.some(isOwn)) return decision;
  return { ...decision, record: marked, writes: writes.map((write) => (isOwn(write) ? ({ ...write, record: marked } as Write) : write)) };
}

function hasFailed(writes: readonly Write[], input: TurnInput): boolean {
  if (input.type === 'generation-failed' || input.type === 'step-failed') return true;
  if (input.type === 'resolved' && input.answer.kind === 'deliver' && input.answer.had_failure === true) return true;
  return writes.some(
    (write) =>
      write.kind === 'append-entry' &&
      'message' in write.entry &&
      write.entry.message.role === 'function_result' &&
      write.entry.message.is_error,
  );
}
