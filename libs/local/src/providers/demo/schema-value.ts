import type { JsonObject, JsonValue, Schema } from '#libs/contracts';
import { violation } from '#libs/iii';
import { asObject, short } from './reply.js';

const MAX_DEPTH = 12;
const PROSE = /^(?:answer|summary|text|result|message|description|title|content|reason|explanation|output|report|name)$/i;

/**
 * A small JSON value that meets a schema: required fields only, `text` where a field asks for prose. A schema that it cannot meet
 * (a pattern, a rare keyword) gets its best try.
 */
export function valueFor(schema: JsonValue | undefined, text: string): JsonValue {
  if (schema === undefined || schema === null || typeof schema !== 'object') return { answer: text };
  return new Builder(asObject(schema), text).build(asObject(schema), 'answer', 0);
}

class Builder {
  constructor(
    private readonly root: JsonObject,
    private readonly text: string,
  ) {}

  build(schema: JsonObject, name: string, depth: number): JsonValue {
    if (depth > MAX_DEPTH) return null;
    if (schema['const'] !== undefined) return schema['const'];
    if (Array.isArray(schema['enum']) && schema['enum'].length > 0) return schema['enum'][0] as JsonValue;
    if (schema['default'] !== undefined && this.meets(schema, schema['default'])) return schema['default'];
    if (typeof schema['$ref'] === 'string')
      return this.build({ ...this.lookUp(schema['$ref']), ...without(schema, '$ref') }, name, depth + 1);
    if (Array.isArray(schema['allOf']))
      return this.build(
        merge(
          without(schema, 'allOf'),
          schema['allOf'].map((part) => this.open(part)),
        ),
        name,
        depth + 1,
      );
    for (const keyword of ['anyOf', 'oneOf']) {
      const branches = schema[keyword];
      if (Array.isArray(branches))
        return this.choose(
          schema,
          branches.map((branch) => merge(without(schema, keyword), [this.open(branch)])),
          name,
          depth,
        );
    }
    return this.ofType(schema, typeOf(schema), name, depth);
  }

  private choose(schema: JsonObject, branches: readonly JsonObject[], name: string, depth: number): JsonValue {
    const values = branches.map((branch) => this.build(branch, name, depth + 1));
    return values.find((value) => this.meets(schema, value)) ?? values[0] ?? null;
  }

  private ofType(schema: JsonObject, type: string, name: string, depth: number): JsonValue {
    switch (type) {
      case 'object': {
        const properties = asObject(schema['properties']);
        const required = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
        const names = required.length > 0 || depth > 0 ? required : Object.keys(properties);
        return Object.fromEntries(names.map((key) => [key, this.build(asObject(properties[key] ?? {}), key, depth + 1)]));
      }
      case 'array': {
        const length = numberOf(schema['minItems']) ?? 0;
        const each = Array.isArray(schema['items']) ? schema['items'] : undefined;
        return Array.from({ length }, (_, i) =>
          this.build(asObject(each?.[i] ?? (each === undefined ? schema['items'] : {})), name, depth + 1),
        );
      }
      case 'integer':
      case 'number':
        return numberFor(schema, type === 'integer');
      case 'boolean':
        return false;
      case 'null':
        return null;
      default:
        return stringFor(schema, PROSE.test(name) ? this.text : 'demo');
    }
  }

  private open(schema: JsonValue): JsonObject {
    const opened = asObject(schema);
    return typeof opened['$ref'] === 'string' ? { ...this.lookUp(opened['$ref']), ...without(opened, '$ref') } : opened;
  }

  private lookUp(reference: string): JsonObject {
    let node: JsonValue = this.root;
    for (const key of reference
      .replace(/^#\/?/, '')
      .split('/')
      .filter((part) => part !== '')) {
      node = asObject(node)[key.replaceAll('~1', '/').replaceAll('~0', '~')] ?? null;
    }
    return asObject(node);
  }

  private meets(schema: JsonObject, value: JsonValue): boolean {
    const definitions = { definitions: this.root['definitions'] ?? {}, $defs: this.root['$defs'] ?? {} };
    try {
      return violation({ ...definitions, ...schema } as Schema, value) === null;
    } catch {
      return true; // a schema that cannot be compiled holds nothing against the value
    }
  }
}

function without(schema: JsonObject, key: string): JsonObject {
  const { [key]: _, ...rest } = schema;
  return rest;
}

function merge(base: JsonObject, parts: readonly JsonObject[]): JsonObject {
  const all = [base, ...parts];
  const required = all.flatMap((part) => (Array.isArray(part['required']) ? part['required'] : []));
  const properties = Object.assign({}, ...all.map((part) => asObject(part['properties']))) as JsonObject;
  const merged = Object.assign({}, ...all) as JsonObject;
  if (required.length > 0) merged['required'] = required;
  if (Object.keys(properties).length > 0) merged['properties'] = properties;
  return merged;
}

function typeOf(schema: JsonObject): string {
  const type = Array.isArray(schema['type']) ? schema['type'].find((each) => each !== 'null') : schema['type'];
  if (typeof type === 'string') return type;
  if (schema['properties'] !== undefined || schema['required'] !== undefined) return 'object';
  if (schema['items'] !== undefined) return 'array';
  if (schema['minimum'] !== undefined || schema['maximum'] !== undefined) return 'number';
  return 'string';
}

const numberOf = (value: JsonValue | undefined): number | undefined => (typeof value === 'number' ? value : undefined);

function numberFor(schema: JsonObject, isWhole: boolean): number {
  const step = numberOf(schema['multipleOf']) ?? (isWhole ? 1 : undefined);
  const above = numberOf(schema['exclusiveMinimum']);
  const below = numberOf(schema['exclusiveMaximum']);
  const least = numberOf(schema['minimum']) ?? (above === undefined ? undefined : above + (step ?? 0.5));
  const most = numberOf(schema['maximum']) ?? (below === undefined ? undefined : below - (step ?? 0.5));
  const wanted = Math.max(least ?? Math.min(0, most ?? 0), Math.min(0, most ?? 0));
  return step === undefined ? wanted : Math.ceil(wanted / step) * step;
}

function stringFor(schema: JsonObject, text: string): string {
  const known: { [format: string]: string } = {
    date: '2000-01-01',
    time: '00:00:00Z',
    'date-time': '2000-01-01T00:00:00Z',
    email: 'demo@example.com',
    uri: 'https://example.com',
    url: 'https://example.com',
    uuid: '00000000-0000-4000-8000-000000000000',
    hostname: 'example.com',
    ipv4: '192.0.2.1',
    ipv6: '2001:db8::1',
  };
  const format = schema['format'];
  const base = (typeof format === 'string' ? known[format] : undefined) ?? short(text, 300);
  const least = numberOf(schema['minLength']) ?? 0;
  return [...base.padEnd(least, '.')].slice(0, numberOf(schema['maxLength']) ?? Infinity).join('');
}
