import type { JsonValue } from '#libs/contracts';
import { fit } from './format.js';
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
  const text = typeof args === 'object' && !Array.isArray(args) ? Object.entries(args).map(([key, of]) => `${key}: ${value(of)}`).join(', ') : value(args);
  return sanitizeLine(text);
}

/** A call with its arguments, cut to `columns`: `coder::read-file(path: "README.md")`. */
export function callText(functionId: string, args: JsonValue, columns: number): string {
  const id = sanitizeLine(functionId);
  const short = shortArguments(args);
  const room = Math.min(columns, 160) - id.length - 2;
  return short === '' || room < 4 ? id : `${id}(${fit(short, room)})`;
}
