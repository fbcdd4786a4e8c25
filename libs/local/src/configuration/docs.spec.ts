import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ownDefinitions } from './definitions.js';

const page = readFileSync(new URL('../../../../docs/CONFIGURATION.md', import.meta.url), 'utf8');

interface FieldSchema {
  type?: string | string[];
  default?: unknown;
  anyOf?: FieldSchema[];
  properties?: { [name: string]: FieldSchema };
  items?: FieldSchema;
  additionalProperties?: FieldSchema | boolean;
}

/** Every field of an entry by its path, with its default. */
function fieldsOf(schema: FieldSchema, above: string): [string, unknown][] {
  const inner = [schema, ...(schema.anyOf ?? [])];
  return inner.flatMap((each) => [
    ...Object.entries(each.properties ?? {}).flatMap(([name, field]): [string, unknown][] => [
      [above + name, field.default],
      ...fieldsOf(field, `${above}${name}.`),
    ]),
    ...(each.items === undefined ? [] : fieldsOf(each.items, `${above.slice(0, -1)}[].`)),
    ...(typeof each.additionalProperties === 'object' ? fieldsOf(each.additionalProperties, `${above}<id>.`) : []),
  ]);
}

/** The rows of the table of an entry: the field and its default as they are written. */
function rowsOf(id: string): Map<string, string> {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${id}.yaml\n`)) ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` \| (.*?) ?\| (.*) \| (.*) \|$/gm)];
  return new Map(rows.map(([, field, value]) => [field as string, value as string]));
}

describe.each([...ownDefinitions.keys()])('docs/CONFIGURATION.md has for %s', (id) => {
  // The fields of a policy are told in a sentence, since they are those of every policy.
  const fields = fieldsOf(ownDefinitions.get(id)?.schema as FieldSchema, '').filter(([path]) => !path.startsWith('default_functions.'));

  it('every field, and no other', () => {
    expect([...rowsOf(id).keys()].sort()).toEqual(fields.map(([path]) => path).sort());
  });

  it('its defaults', () => {
    const rows = rowsOf(id);
    for (const [path, value] of fields) {
      if (value === undefined || path === 'settings' || path === 'routing_heuristics') continue; // told by their fields, and in words
      expect([path, rows.get(path)]).toEqual([path, `\`${JSON.stringify(value)}\``]);
    }
  });
});

it('docs/CONFIGURATION.md has the fields of a policy', () => {
  const schema = ownDefinitions.get('harness')?.schema as FieldSchema;
  const policy = schema.properties?.['default_functions']?.anyOf?.[0]?.properties ?? {};
  expect(Object.keys(policy)).toEqual(['allow', 'deny', 'expose']);
  for (const name of Object.keys(policy)) expect(page).toContain(`\`${name}\``);
});
