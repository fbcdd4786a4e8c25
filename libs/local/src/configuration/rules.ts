import { Transform, Type } from 'class-transformer';
import { ValidateBy, ValidateIf, ValidateNested } from 'class-validator';

/** Says what a value should be (`must be ...`), or null when it is that. Never repeats the value. */
export type Check = (value: unknown) => string | null;

/** Makes a property a field of a configuration file: its value must pass `check`. */
export const field = (check: Check): PropertyDecorator =>
  ValidateBy({
    name: 'field',
    validator: { validate: (value) => check(value) === null, defaultMessage: (given) => check(given?.value) ?? '' },
  });

export const isMapping = (value: unknown): value is { [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return 'text';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'number' ? 'a number' : 'true or false';
}
const butIs = (value: unknown): string => `, but is ${kindOf(value)}`;

/** A whole number from `min` to `max`. */
export const whole =
  (min: number, max: number): Check =>
  (value) => {
    const expected = `must be a whole number from ${min} to ${max}`;
    if (typeof value !== 'number') return expected + butIs(value);
    return Number.isInteger(value) && value >= min && value <= max ? null : expected;
  };

/** The longest wait that a timer of Node can do, in ms: about 24 days. */
const TIMER_MAX_MS = 2_147_483_647;
/** Milliseconds that a timer can wait, at least `min`. */
export const milliseconds = (min = 1): Check => whole(min, TIMER_MAX_MS);

/** Text with something in it; `what` names it, e.g. `the id of a model`. */
export const text =
  (what: string): Check =>
  (value) => {
    if (typeof value !== 'string') return `must be ${what}${butIs(value)}`;
    return value.trim() === '' ? `must be ${what}, but is blank` : null;
  };

/** True or false. */
export const flag: Check = (value) => (typeof value === 'boolean' ? null : `must be true or false${butIs(value)}`);

/** One of some words. */
export const oneOf =
  (...words: string[]): Check =>
  (value) =>
    words.includes(value as string) ? null : `must be one of ${words.join(', ')}`;

/** The same, or null (an empty field). */
export const nullable =
  (check: Check): Check =>
  (value) => {
    if (value === null) return null;
    const problem = check(value);
    return problem === null ? null : problem.replace(/^must be [^,]*/, (expected) => `${expected} or null`);
  };

/** A list whose items all pass `check`. */
export const listOf =
  (what: string, check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return `must be a list of ${what}${butIs(value)}`;
    const problems = value.map(check);
    const first = problems.findIndex((problem) => problem !== null);
    return first < 0 ? null : `must be a list of ${what}; item ${first + 1} ${problems[first]}`;
  };

/** A field that may be absent. */
export const optional: PropertyDecorator = (target, key) => ValidateIf((_object, value) => value !== undefined)(target, key);

/** A section: a mapping with fields of its own. An empty one (null) counts as absent. */
export function section<T extends object>(make: new () => T, empty: () => T | null = () => new make()): PropertyDecorator {
  const check: Check = (value) => (isMapping(value) ? null : `must be a mapping of fields${butIs(value)}`);
  return all(
    Type(() => make),
    Transform(({ value }) => (value === null ? empty() : value) as unknown),
    ValidateIf((_object, value) => value !== null && value !== undefined),
    ValidateNested(),
    field(check),
  );
}

/** A list of sections. An empty field (null) counts as an empty list. */
export function sections<T extends object>(make: new () => T, what: string): PropertyDecorator {
  const check: Check = (value) => (isMapping(value) ? null : 'must be a mapping of fields');
  return all(
    Type(() => make),
    Transform(({ value }) => (value === null ? [] : value) as unknown),
    ValidateNested({ each: true }),
    field(listOf(what, check)),
  );
}

const all =
  (...decorators: PropertyDecorator[]): PropertyDecorator =>
  (target, key) => {
    for (const decorate of decorators) decorate(target, key);
  };
