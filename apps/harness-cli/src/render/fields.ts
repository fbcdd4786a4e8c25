import { pad, width } from './format.js';
import type { Style } from './style.js';

/** Names and values under each other, the names dim. */
export function fields(rows: readonly (readonly [name: string, value: string])[], style: Style): string[] {
  const column = Math.max(...rows.map(([name]) => width(name)));
  return rows.flatMap(([name, value]) => {
    const [first = '', ...rest] = value.split('\n');
    return [`${style.dim(pad(name, column))}  ${first}`, ...rest.map((line) => `${' '.repeat(column)}  ${line}`)];
  });
}
