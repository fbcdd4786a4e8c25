import type { JsonValue } from '#libs/contracts';
import type { CallResult } from '../machine/decision.js';
import type { TurnRecord } from '../record/record.js';

/** What a parent learns of its child's end: text for the model, the facts as `details`. Failure never looks like success. */
export function childOutcome(child: TurnRecord): CallResult {
  const { status, result, result_error, reason } = child;
  const details: JsonValue = { child_session_id: child.session_id, child_turn_id: child.turn_id, status, result, result_error, reason };
  const text = textOf(child);
  switch (status) {
    case 'completed':
      if (result_error === null && text === '')
        return { content: [{ type: 'text', text: 'The sub-agent ended without an answer.' }], details, is_error: true };
      if (result_error === null)
        return {
          content: [{ type: 'text', text: reason === 'length' ? `${text}\n\n(This answer was cut off at its length limit.)` : text }],
          details,
          is_error: false,
        };
      return {
        content: [{ type: 'text', text: `The sub-agent did not finish its task: ${result_error}${partial(text)}` }],
        details,
        is_error: true,
      };
    case 'failed':
      return {
        content: [{ type: 'text', text: `The sub-agent failed: ${result_error ?? reason ?? 'no reason is known'}${partial(text)}` }],
        details,
        is_error: true,
      };
    case 'cancelled':
      return {
        content: [{ type: 'text', text: `The sub-agent was stopped before it finished.${partial(text)}` }],
        details,
        is_error: true,
      };
    case 'running':
    case 'awaiting_functions':
      throw new Error(`turn ${child.turn_id} has not ended`);
    default: {
      const unknown: never = status;
      throw new Error(`unknown status ${String(unknown)}`);
    }
  }
}

/** The result as text; a value that meets a contract is one whatever it is, also `null` and `""`. */
function textOf({ status, options, result, result_error }: TurnRecord): string {
  if (options.output.type === 'json' && status === 'completed' && result_error === null) return JSON.stringify(result);
  return typeof result === 'string' ? result.trim() : result === null ? '' : JSON.stringify(result);
}
const partial = (text: string): string => (text === '' ? '' : `\n\nWhat it had written (not its final answer):\n${text}`);
