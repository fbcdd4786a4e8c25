import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { JsonValue, OutputContract } from '#libs/contracts';
import { describeErrors } from '#libs/iii';

const compiled = new WeakMap<object, ValidateFunction>();

/** Compiles the schema of a contract: vendor keywords and unknown formats mean nothing, everything else is checked. */
function compile(schema: object): ValidateFunction {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    const ajv = new Ajv({ strict: false, allErrors: true, verbose: true, logger: false });
    addFormats.default(ajv);
    const { $schema: _, ...body } = schema as { [key: string]: unknown };
    validate = ajv.compile(body);
    compiled.set(schema, validate);
  }
  return validate;
}

/** What is wrong with the schema of an output contract itself; null when it can be used. */
export function contractFault(output: OutputContract): string | null {
  if (output.type === 'text' || output.schema === undefined || output.schema === null || output.schema === true) return null;
  if (typeof output.schema !== 'object' || Array.isArray(output.schema)) return 'must be a JSON Schema object';
  try {
    compile(output.schema);
    return null;
  } catch (error) {
    return `is not a usable JSON Schema: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** What is wrong with a value under a contract, naming the fields; null when it meets it. */
export function valueFault(output: OutputContract, value: JsonValue): string | null {
  if (output.type === 'text' || typeof output.schema !== 'object' || output.schema === null || Array.isArray(output.schema)) return null;
  const validate = compile(output.schema);
  return validate(value) ? null : describeErrors(validate.errors ?? [], output.schema, 'the value');
}
