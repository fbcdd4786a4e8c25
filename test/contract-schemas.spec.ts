import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { harnessFunctions, harnessTriggerTypes } from '#libs/contracts';

interface Published { name: string; request_schema?: unknown; response_schema?: unknown; invocation_schema?: unknown }
const wire = JSON.parse(readFileSync(new URL('./fixtures/wire/harness.json', import.meta.url), 'utf8')) as {
  functions: Published[];
  triggers: Published[];
};

/** Removes description texts (not properties of that name), which are ours to choose. */
export function withoutDescriptions(node: unknown, names = false): unknown {
  if (Array.isArray(node)) return node.map((item) => withoutDescriptions(item));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key, value]) => names || key !== 'description' || typeof value !== 'string')
      .map(([key, value]) => [key, withoutDescriptions(value, key === 'properties' || key === 'definitions')]),
  );
}

describe('published schemas', () => {
  it.each(wire.functions)('$name has the request and response of the contract', (published) => {
    const ours = harnessFunctions[published.name as keyof typeof harnessFunctions];
    expect(withoutDescriptions(ours.request)).toEqual(published.request_schema);
    expect(withoutDescriptions(ours.response)).toEqual(published.response_schema);
  });
  it.each(wire.triggers)('$name has the binding configuration of the contract', (published) => {
    const ours = harnessTriggerTypes[published.name as keyof typeof harnessTriggerTypes];
    expect(withoutDescriptions(ours.config)).toEqual(published.invocation_schema);
  });
  it('has the nine functions and seven trigger types, no more', () => {
    expect(Object.keys(harnessFunctions).sort()).toEqual(wire.functions.map((f) => f.name).sort());
    expect(Object.keys(harnessTriggerTypes).sort()).toEqual(wire.triggers.map((f) => f.name).sort());
  });
});
