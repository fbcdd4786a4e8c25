import type { JsonValue } from '#libs/contracts';
import type { CallResult } from '../machine/decision.js';
import type { TurnRecord } from '../record/record.js';

/** What a parent learns of its child's end: text for the model, the facts as `details`. Failure never looks like success. */
export function childOutcome(child: TurnRecord): CallResult {
  const { status, result, result_error, reason } = child;
  const details: JsonValue = { child_session_id: child.session_id, child_turn_id: child.turn_id, status, result, result_error, reason };
  const text = textOf(result);
  switch (status) {
    case 'completed':
      if (result_error === null) return { content: [{ type: 'text', text: text || 'The sub-agent ended without a text.' }], details, is_error: false };
      return { content: [{ type: 'text', text: `The sub-agent did not finish its task: ${result_error}${partial(text)}` }], details, is_error: true };
    case 'failed':
      return { content: [{ type: 'text', text: `The sub-agent failed: ${result_error ?? reason ?? 'no reason is known'}${partial(text)}` }], details, is_error: true };
    case 'cancelled':
      return { content: [{ type: 'text', text: `The sub-agent was stopped before it finished.${partial(text)}` }], details, is_error: true };
    case 'running':
    case 'awaiting_functions':
      throw new Error(`turn ${child.turn_id} has not ended`);
    default: {
      const unknown: never = status;
      throw new Error(`unknown status ${String(unknown)}`);
    }
  }
}

const textOf = (result: JsonValue): string => (typeof result === 'string' ? result.trim() : result === null ? '' : JSON.stringify(result));
const partial = (text: string): string => (text === '' ? '' : `\n\nWhat it had written (not its final answer):\n${text}`);
