import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { Schema } from '#libs/contracts';
import { violation } from '#libs/iii';
import { ownDefinitions } from './definitions.js';
import { type FolderContent, withText } from './folder.js';
import { readConfiguration } from './load.js';

const EMPTY: FolderContent = { dir: '/config', isThere: true, names: [], texts: new Map() };

interface FieldSchema {
  description?: string;
  default?: unknown;
}
const schemaOfEntry = (id: string): Schema => {
  const definition = ownDefinitions.get(id);
  if (definition === undefined) throw new Error(`no entry ${id}`);
  return definition.schema as Schema;
};
const propertiesOf = (id: string) => (schemaOfEntry(id) as { properties: { [name: string]: FieldSchema } }).properties;

/** Does the rule of the file take the value? */
const isTaken = (id: string, value: unknown): boolean => readConfiguration(withText(EMPTY, `${id}.yaml`, stringify(value)), {}).ok;

const VALUES = [
  null,
  true,
  false,
  '',
  ' ',
  'text',
  'a b',
  'coder::*',
  '!x',
  'off',
  'power',
  'judge',
  'https://example.com/v1',
  '0 * * * * *',
  'PATH',
  -1,
  0,
  0.5,
  1,
  3,
  99,
  1_000,
  60_000,
  1e7,
  1e12,
  1e300,
  [],
  ['*'],
  ['a b'],
  [''],
  [1],
  {},
  { allow: ['*'] },
  { allow: 'x' },
];
/** Fields whose rule says more than a JSON Schema can: the schema may take more, never less. */
const FINER = new Set(['sweep_expression', 'non_accessible_globs', 'providers']);

describe.each([...ownDefinitions.keys()])('the schema of %s', (id) => {
  it.each(Object.keys(propertiesOf(id)))('takes for %s what its rule takes', (name) => {
    const schema = schemaOfEntry(id);
    for (const value of VALUES) {
      const bySchema = violation(schema, { [name]: value }) === null;
      const byRule = isTaken(id, { [name]: value });
      if (byRule || !FINER.has(name)) expect([name, value, bySchema]).toEqual([name, value, byRule]);
    }
  });

  it('describes every field, and its defaults are valid', () => {
    const properties = propertiesOf(id);
    for (const [name, { description }] of Object.entries(properties))
      expect([name, description]).toEqual([name, expect.stringMatching(/\.$/)]);
    const defaults = Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, field.default]));
    expect(violation(schemaOfEntry(id), defaults)).toBeNull();
  });

  it('knows no other field', () => {
    expect(violation(schemaOfEntry(id), { no_such_field: 1 })).toBe('no_such_field is not a known field');
  });
});
