import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { Schema } from '#libs/contracts';
import { type CompilePart, explain } from './explain.js';

/**
 * Every process compiles the schemas of its first requests, so that has to be quick. The schemas of this program are held
 * against the meta-schema by a test; here that would double the time, and ajv's pass over the code that it makes costs more
 * than it saves.
 */
const ajv = new Ajv({
  strict: false,
  allErrors: true,
  verbose: true,
  useDefaults: false,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  code: { optimize: false },
});
addFormats.default(ajv);

const compiled = new WeakMap<object, ValidateFunction>();

/** Checks `value` against `schema`; returns what is wrong as `<path> <what>`, or null. Compiles each schema once. */
export function violation(schema: Schema, value: unknown): string | null {
  if (typeof schema === 'boolean') return schema ? null : 'request must be empty';
  let validate = compiled.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(schema as object);
    compiled.set(schema, validate);
  }
  return validate(value) ? null : describeErrors(validate.errors ?? [], schema);
}

/** Checks of the branches of unions, made when one has to be explained. */
const compiledParts = new WeakMap<object, ValidateFunction | null>();

const compilePart: CompilePart = (part, root) => {
  let validate = compiledParts.get(part);
  if (validate === undefined) {
    validate = standsAlone(part) ? ajv.compile({ ...part, definitions: root['definitions'] ?? {}, $defs: root['$defs'] ?? {} }) : null;
    compiledParts.set(part, validate);
  }
  return validate;
};

/** True when a part of a schema refers to named definitions only, which can go with it. */
function standsAlone(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return true;
  const ref = (part as { $ref?: unknown }).$ref;
  if (typeof ref === 'string' && !/^#\/(definitions|\$defs)\//.test(ref)) return false;
  return Object.values(part).every(standsAlone);
}

/**
 * The most telling of ajv's errors, in words: names the field and what it should be, also inside unions. They are made
 * with `verbose`; `root` is the schema that was checked, `whole` what the value itself is called.
 */
export const describeErrors = (errors: readonly ErrorObject[], root: Schema = true, whole = 'request'): string =>
  explain(errors, { root: typeof root === 'boolean' ? {} : root, whole, compile: compilePart });
