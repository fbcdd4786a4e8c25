import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { errorMessage, type JsonValue } from '#libs/contracts';
import { describeErrors } from '#libs/iii';
import { approvalEntry, type ConfigurationEntry, confineEntry, harnessEntry, routerEntry } from './entries/entry.js';
import type { Reading } from './fault.js';
import { schemaOf } from './schema.js';

/** What a configuration entry is, without its value. */
export interface EntryDefinition {
  id: string;
  name: string;
  description: string;
  /** JSON Schema of the value. */
  schema: JsonValue;
  metadata?: JsonValue;
}

const definitionOf = ({ id, name, description, fields }: ConfigurationEntry<object, unknown>): EntryDefinition => ({
  id,
  name,
  description,
  schema: JSON.parse(JSON.stringify(schemaOf(fields))) as JsonValue,
});

/** The entries of the harness itself. They cannot be registered anew. */
export const ownDefinitions: ReadonlyMap<string, EntryDefinition> = new Map(
  [harnessEntry, routerEntry, confineEntry, approvalEntry].map((entry) => [
    entry.id,
    definitionOf(entry as ConfigurationEntry<object, unknown>),
  ]),
);

/** Says what is wrong with a value, or null. */
export type ValueCheck = (value: JsonValue) => string | null;

/** Makes the check of a JSON Schema; or says why it is none. Formats are not checked. */
export function compileSchema(schema: JsonValue): { ok: true; check: ValueCheck } | { ok: false; problem: string } {
  if (typeof schema === 'boolean') return { ok: true, check: () => (schema ? null : 'no value is allowed') };
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return { ok: false, problem: 'must be a JSON Schema' };
  // A compiler of its own: schemas of different workers may have the same `$id`.
  const { $schema: dialect, ...rest } = schema;
  const options = { strict: false, allErrors: true, verbose: true, validateFormats: false, logger: false } as const;
  const ajv = typeof dialect === 'string' && /20(19-09|20-12)/.test(dialect) ? new Ajv2020(options) : new Ajv(options);
  try {
    const validate: ValidateFunction = ajv.compile(rest);
    return { ok: true, check: (value) => (validate(value) ? null : describeErrors(validate.errors ?? [], rest)) };
  } catch (error) {
    return { ok: false, problem: `is not a valid JSON Schema: ${errorMessage(error)}` };
  }
}

/** Reads the text of a definition file. */
export function parseDefinition(file: string, id: string, text: string): Reading<EntryDefinition> {
  const fault = (problem: string): Reading<EntryDefinition> => ({ ok: false, faults: [{ file, field: '', problem }] });
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return fault('is not valid JSON');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return fault('must be an object');
  const { name, description, schema, metadata } = parsed as { [key: string]: JsonValue | undefined };
  if (typeof name !== 'string' || typeof description !== 'string' || schema === undefined) {
    return fault('must have a name, a description and a schema');
  }
  return { ok: true, value: { id, name, description, schema, ...(metadata === undefined ? {} : { metadata }) } };
}

/** The text of the definition file of an entry. */
export const definitionText = ({ id: _, ...definition }: EntryDefinition): string => `${JSON.stringify(definition, null, 2)}\n`;
