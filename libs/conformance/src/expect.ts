import { isDeepStrictEqual } from 'node:util';

/** Most of a value that a finding shows, in characters. */
const SHOWN = 300;

/** A rule that a harness breaks, in words. */
export class Finding extends Error {
  override readonly name = 'Finding';
}

/** A value as a finding shows it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}… (${text.length} characters)` : text;
}

/** Throws a `Finding` that says what is wrong unless `condition` holds. */
export function holds(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Finding(otherwise);
}

/** Throws a `Finding` unless `actual` is `expected`, compared deeply. */
export function same(actual: unknown, expected: unknown, what: string): void {
  holds(isDeepStrictEqual(actual, expected), `${what} is ${shown(actual)}, not ${shown(expected)}`);
}
