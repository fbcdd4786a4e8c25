import { isDeepStrictEqual } from 'node:util';
import { type Document, isMap, isScalar, parseDocument, stringify, YAMLMap } from 'yaml';
import type { JsonValue } from '#libs/contracts';

const STYLE = { lineWidth: 0 } as const;
const isMapping = (value: unknown): value is { [key: string]: JsonValue } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The text of a YAML file that means `value`; comments and the order of the text before it stay where they can. */
export function yamlText(before: string | null, value: JsonValue): string {
  return (before === null ? null : edited(before, value)) ?? stringify(value, STYLE);
}

function edited(before: string, value: JsonValue): string | null {
  const document = parseDocument(before);
  if (document.errors.length > 0 || !isMap(document.contents) || !isMapping(value)) return null;
  merge(document, document.contents, value);
  try {
    const text = document.toString(STYLE);
    return isDeepStrictEqual(parseDocument(text).toJS(), value) ? text : null;
  } catch {
    return null; // an alias that lost its anchor
  }
}

function merge(document: Document, map: YAMLMap, value: { [key: string]: JsonValue }): void {
  map.items = map.items.filter((pair) => isScalar(pair.key) && Object.hasOwn(value, String(pair.key.value)));
  for (const [key, inner] of Object.entries(value)) {
    const node: unknown = map.get(key, true);
    if (node instanceof YAMLMap && isMapping(inner)) merge(document, node, inner);
    else if (node === undefined || !isDeepStrictEqual(plainOf(document, node), inner)) map.set(key, document.createNode(inner));
  }
}

const plainOf = (document: Document, node: unknown): unknown =>
  typeof node === 'object' && node !== null && 'toJS' in node ? (node as { toJS(document: Document): unknown }).toJS(document) : node;
