import type { JsonValue } from '#libs/contracts';
import { cut } from './format.js';
import { sanitizeLine } from './sanitize.js';

/** Longest value of an argument that is shown, in characters. */
const VALUE_CHARS = 60;

function value(of: JsonValue): string {
  const text = JSON.stringify(of) ?? 'null';
  return text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}…` : text;
}

/** Arguments of a call on one line: `path: "README.md", limit: 3`. */
export function shortArguments(args: JsonValue): string {
  if (args === null) return '';
  const text =
    typeof args === 'object' && !Array.isArray(args)
      ? Object.entries(args)
          .map(([key, of]) => `${key}: ${value(of)}`)
          .join(', ')
      : value(args);
  return sanitizeLine(text);
}

/** The call that an `agent_trigger` call stands for, and what the model says that it is for. */
export function unwrapCall(functionId: string, args: JsonValue): { functionId: string; args: JsonValue; description: string } {
  if (
    functionId === 'agent_trigger' &&
    typeof args === 'object' &&
    args !== null &&
    !Array.isArray(args) &&
    typeof args['function'] === 'string'
  ) {
    const { function: target, description, payload = {} } = args;
    return { functionId: target, args: payload, description: typeof description === 'string' ? sanitizeLine(description) : '' };
  }
  return { functionId, args, description: '' };
}

/** A call with its arguments, cut to `columns`: `coder::read-file(path: "README.md")`. */
export function callText(functionId: string, args: JsonValue, columns: number): string {
  const id = sanitizeLine(functionId);
  const short = shortArguments(args);
  const room = Math.min(columns, 160) - id.length - 2;
  return short === '' || room < 4 ? id : `${id}(${cut(short, room)})`;
}
