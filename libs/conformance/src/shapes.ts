import { isDeepStrictEqual } from 'node:util';
import { shown } from './expect.js';

/** Removes description texts (not properties of that name) from a schema: each harness words its own. */
export function withoutDescriptions(node: unknown, names = false): unknown {
  if (Array.isArray(node)) return node.map((item) => withoutDescriptions(item));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key, value]) => names || key !== 'description' || typeof value !== 'string')
      .map(([key, value]) => [key, withoutDescriptions(value, key === 'properties' || key === 'definitions')]),
  );
}

/** Where two schemas first differ, in words; null when they are the same but for their descriptions. */
export const schemaDifference = (actual: unknown, expected: unknown): string | null =>
  difference(withoutDescriptions(actual), withoutDescriptions(expected), '');

function difference(actual: unknown, expected: unknown, path: string): string | null {
  if (isDeepStrictEqual(actual, expected)) return null;
  if (isObject(actual) && isObject(expected)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      const found = difference(actual[key], expected[key], `${path}/${key}`);
      if (found !== null) return found;
    }
  }
  return `${path === '' ? 'the schema' : path} is ${shown(actual)}, not ${shown(expected)}`;
}

const isObject = (value: unknown): value is { [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
