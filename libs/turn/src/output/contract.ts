import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { errorMessage, type JsonValue, type OutputContract } from '#libs/contracts';
import { describeErrors } from '#libs/iii';
import { withinTime } from './bounded.js';

/** How long a schema may take to compile, or a value to be checked, in ms. Schemas come from callers and from models. */
const LIMIT_MS = 500;
/** Compiled schemas that are kept, by their text. */
const MAX_COMPILED = 100;
const compiled = new Map<string, ValidateFunction>();

/** Compiles the schema of a contract: vendor keywords and unknown formats mean nothing, everything else is checked. */
function compile(schema: object): ValidateFunction {
  const key = JSON.stringify(schema);
  const known = compiled.get(key);
  if (known !== undefined) return known;
  if (hasAsync(schema)) throw new Error('$async is not supported: a value is checked at once');
  const { $schema: _, ...body } = schema as { [key: string]: unknown };
  const validate = withinTime(LIMIT_MS, () => {
    const ajv = new Ajv({ strict: false, allErrors: true, verbose: true, logger: false });
    addFormats.default(ajv);
    return ajv.compile(body);
  });
  if (compiled.size >= MAX_COMPILED) compiled.delete(compiled.keys().next().value ?? '');
  compiled.set(key, validate);
  return validate;
}

/** True for a schema that would be checked by a promise, which nothing here waits for. */
const hasAsync = (node: unknown): boolean => {
  if (typeof node !== 'object' || node === null) return false;
  return ('$async' in node && !Array.isArray(node)) || Object.values(node).some(hasAsync);
};

/** What is wrong with the schema of an output contract itself; null when it can be used. */
export function contractFault(output: OutputContract): string | null {
  if (output.type === 'text' || output.schema === undefined || output.schema === null || output.schema === true) return null;
  if (typeof output.schema !== 'object' || Array.isArray(output.schema)) return 'must be a JSON Schema object';
  try {
    compile(output.schema);
    return null;
  } catch (error) {
    return `is not a usable JSON Schema: ${errorMessage(error)}`;
  }
}

/** What is wrong with a value under a contract, naming the fields; null when it meets it. */
export function valueFault(output: OutputContract, value: JsonValue): string | null {
  if (output.type === 'text' || typeof output.schema !== 'object' || output.schema === null || Array.isArray(output.schema)) return null;
  const { schema } = output;
  try {
    const validate = compile(schema);
    return withinTime(LIMIT_MS, () => (validate(value) ? null : describeErrors(validate.errors ?? [], schema, 'the value')));
  } catch (error) {
    return `the value could not be checked: ${errorMessage(error)}`;
  }
}
