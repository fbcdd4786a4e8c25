import { Transform, Type } from 'class-transformer';
import { ValidateBy, ValidateIf, ValidateNested } from 'class-validator';
import { describeField, type FieldSchema, type ObjectSchema, schemaOf } from './schema.js';

/** Says what a value should be (`must be ...`), or null when it is that. Never repeats the value. */
export interface Check {
  (value: unknown): string | null;
  /** The same as a JSON Schema, as far as that can say it; made when it is asked for. */
  schema?: FieldSchema;
}

/** A check with the JSON Schema of what it takes. */
export const checkOf = (schema: FieldSchema, check: (value: unknown) => string | null): Check => Object.assign(check, { schema });

/** Makes a property a field of a configuration file: its value must pass `check`. */
export const field =
  (check: Check, description?: string): PropertyDecorator =>
  (target, key) => {
    describeField(target, String(key), { schema: check.schema, description });
    const validator = {
      validate: (value: unknown) => check(value) === null,
      defaultMessage: (given?: { value: unknown }) => check(given?.value) ?? '',
    };
    ValidateBy({ name: 'field', validator })(target, key);
  };

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
export const whole = (min: number, max: number): Check =>
  checkOf({ type: 'integer', minimum: min, maximum: max }, (value) => {
    const expected = `must be a whole number from ${min} to ${max}`;
    if (typeof value !== 'number') return expected + butIs(value);
    return Number.isInteger(value) && value >= min && value <= max ? null : expected;
  });

/** The longest wait that a timer of Node can do, in ms: about 24 days. */
const TIMER_MAX_MS = 2_147_483_647;
/** Milliseconds that a timer can wait, at least `min`. */
export const milliseconds = (min = 1): Check => whole(min, TIMER_MAX_MS);

/** Text with something in it; `what` names it, e.g. `the id of a model`. */
export const text = (what: string): Check =>
  checkOf({ type: 'string', pattern: '\\S' }, (value) => {
    if (typeof value !== 'string') return `must be ${what}${butIs(value)}`;
    return value.trim() === '' ? `must be ${what}, but is blank` : null;
  });

/** True or false. */
export const flag: Check = checkOf({ type: 'boolean' }, (value) =>
  typeof value === 'boolean' ? null : `must be true or false${butIs(value)}`,
);

/** One of some words. */
export const oneOf = (...words: string[]): Check =>
  checkOf({ type: 'string', enum: words }, (value) => (words.includes(value as string) ? null : `must be one of ${words.join(', ')}`));

/** The same, or null (an empty field). */
export const nullable = (check: Check): Check =>
  checkOf({ anyOf: [check.schema ?? {}, { type: 'null' }] }, (value) => {
    if (value === null) return null;
    const problem = check(value);
    return problem === null ? null : problem.replace(/^must be [^,]*/, (expected) => `${expected} or null`);
  });

/** A list whose items all pass `check`. */
export const listOf = (what: string, check: Check): Check =>
  checkOf({ type: 'array', items: check.schema ?? {} }, (value) => {
    if (!Array.isArray(value)) return `must be a list of ${what}${butIs(value)}`;
    const problems = value.map(check);
    const first = problems.findIndex((problem) => problem !== null);
    return first < 0 ? null : `must be a list of ${what}; item ${first + 1} ${problems[first]}`;
  });

/** A field that may be absent. */
export const optional: PropertyDecorator = (target, key) => ValidateIf((_object, value) => value !== undefined)(target, key);

/** A section: a mapping with fields of its own. An empty one (null) counts as absent. */
export function section<T extends object>(
  make: new () => T,
  description: string,
  empty: () => T | null = () => new make(),
): PropertyDecorator {
  const schema: ObjectSchema = { anyOf: [schemaOf(make), { type: 'null' }] };
  const check = checkOf(schema, (value) => (isMapping(value) ? null : `must be a mapping of fields${butIs(value)}`));
  return all(
    Type(() => make),
    Transform(({ value }) => (value === null ? empty() : value) as unknown),
    ValidateIf((_object, value) => value !== null && value !== undefined),
    ValidateNested(),
    field(check, description),
  );
}

/** A list of sections. An empty field (null) counts as an empty list. */
export function sections<T extends object>(make: new () => T, what: string, description: string): PropertyDecorator {
  const check = checkOf(schemaOf(make), (value) => (isMapping(value) ? null : 'must be a mapping of fields'));
  const list = listOf(what, check);
  const schema: ObjectSchema = { anyOf: [list.schema ?? {}, { type: 'null' }] };
  return all(
    Type(() => make),
    Transform(({ value }) => (value === null ? [] : value) as unknown),
    ValidateNested({ each: true }),
    field(checkOf(schema, list), description),
  );
}

const all =
  (...decorators: PropertyDecorator[]): PropertyDecorator =>
  (target, key) => {
    for (const decorate of decorators) decorate(target, key);
  };
