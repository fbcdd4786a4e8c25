import { readFileSync } from 'node:fs';

/** A function or trigger type as the contract publishes it. */
export interface Published {
  name: string;
  request_schema?: unknown;
  response_schema?: unknown;
  invocation_schema?: unknown;
  [other: string]: unknown;
}

/** The contract of the harness: its functions and trigger types. */
export const wire = JSON.parse(readFileSync(new URL('../fixtures/wire/harness.json', import.meta.url), 'utf8')) as {
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
