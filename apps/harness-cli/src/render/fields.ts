import { pad, width } from './format.js';
import type { Style } from './style.js';
import { wrap } from './wrap.js';

/** Names and values under each other, the names dim; long values are broken to fit into `columns`. */
export function fields(rows: readonly (readonly [name: string, value: string])[], columns: number, style: Style): string[] {
  const column = Math.max(...rows.map(([name]) => width(name))) + 2;
  return rows.flatMap(([name, value]) => {
    const [first = '', ...rest] = wrap(value, columns, column);
    return [style.dim(pad(name, column)) + first, ...rest];
  });
}
