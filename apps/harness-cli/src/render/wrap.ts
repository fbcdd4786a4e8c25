import wrapAnsi from 'wrap-ansi';
import { width } from './format.js';

/**
 * `text` broken between words into lines of at most `columns`, counting `indent`, which stands before each line but the first.
 * Infinite columns, as in a pipe, break nothing.
 */
export function wrap(text: string, columns: number, indent = 0): string[] {
  const room = Math.max(20, columns - indent);
  const lines = text.split('\n').flatMap((line) => (width(line) > room ? wrapAnsi(line, room).split('\n') : [line]));
  return lines.map((line, index) => (index === 0 || line === '' ? line : ' '.repeat(indent) + line));
}
