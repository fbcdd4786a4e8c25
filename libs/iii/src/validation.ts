import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { Schema } from '#libs/contracts';

const ajv = new Ajv({ strict: false, allErrors: true, useDefaults: false, validateFormats: false });
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
  return validate(value) ? null : describeErrors(validate.errors ?? []);
}

const pathOf = (error: ErrorObject): string => error.instancePath.slice(1).replaceAll('/', '.');

function describe(error: ErrorObject): string {
  const at = pathOf(error);
  const field = (name: unknown): string => (at === '' ? String(name) : `${at}.${String(name)}`);
  switch (error.keyword) {
    case 'required':
      return `${field(error.params['missingProperty'])} is missing`;
    case 'additionalProperties':
      return `${field(error.params['additionalProperty'])} is not a known field`;
    case 'enum':
      return `${at || 'request'} must be one of ${(error.params['allowedValues'] as unknown[]).map((v) => JSON.stringify(v)).join(', ')}`;
    case 'type':
      return `${at || 'request'} must be ${[error.params['type']].flat().join(' or ')}`;
    default:
      return `${at || 'request'} ${error.message ?? 'is not valid'}`;
  }
}

/** Which discriminator values a union's branches wanted; a branch that fails there is not the one that was meant. */
const isDiscriminator = (error: ErrorObject): boolean =>
  error.keyword === 'enum' && /\/(type|role|op)$/.test(error.instancePath) && (error.params['allowedValues'] as unknown[]).length === 1;

/** The most telling of a list of ajv errors, in words. In a union, the errors of the branch that was meant win. */
export function describeErrors(errors: readonly ErrorObject[]): string {
  const leaves = errors.filter((e) => e.keyword !== 'anyOf' && e.keyword !== 'oneOf' && e.keyword !== 'if');
  const wrongBranches = new Set(leaves.filter(isDiscriminator).map((e) => e.schemaPath.replace(/\/properties\/(type|role|op)\/.*$/, '')));
  const rightBranch = leaves.filter((e) => !isDiscriminator(e) && ![...wrongBranches].some((b) => e.schemaPath.startsWith(b)));
  const pool = rightBranch.length > 0 ? rightBranch : leaves;
  const deepest = Math.max(0, ...pool.map((e) => e.instancePath.split('/').length));
  const told = pool.filter((e) => e.instancePath.split('/').length === deepest).map(describe);
  return [...new Set(told)].slice(0, 3).join('; ') || 'request is not valid';
}
