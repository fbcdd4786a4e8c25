import { expect, it } from 'vitest';
import { isTooDeep, MAX_DEPTH } from './depth.js';

const nested = (depth: number, inside = '""'): string => `${'{"a":['.repeat(depth / 2)}${inside}${']}'.repeat(depth / 2)}`;

it('counts what nests, not what stands side by side or in strings', () => {
  expect([nested(MAX_DEPTH), nested(MAX_DEPTH + 2)].map(isTooDeep)).toEqual([false, true]);
  expect(isTooDeep(`[${'[],'.repeat(5_000)}{}]`)).toBe(false);
  const brackets = '['.repeat(5_000);
  for (const text of [brackets, `\\"${brackets}`, `\\\\\\"${brackets}`]) expect(isTooDeep(`["${text}"]`)).toBe(false);
  expect(isTooDeep(`["\\\\",${brackets}`)).toBe(true);
  expect(isTooDeep(`["${brackets}`)).toBe(false);
});
