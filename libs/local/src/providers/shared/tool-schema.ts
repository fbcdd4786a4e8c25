import type { JsonObject, JsonValue } from '#libs/contracts';

/** The schema of a function as a vendor takes it: always an object at the top. */
export interface VendorSchema {
  schema: JsonObject;
  /** True when the function's own schema is no object: the model then writes `{"value": ...}`. */
  wrapped: boolean;
}

const PERMISSIVE: VendorSchema = { schema: { type: 'object', properties: {} }, wrapped: false };
const cache = new WeakMap<object, VendorSchema>();
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
const LISTS = new Set(['oneOf', 'anyOf', 'allOf', 'prefixItems']);
const ONES = new Set(['items', 'additionalProperties', 'not', 'contains', 'propertyNames', 'if', 'then', 'else', 'unevaluatedProperties']);
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
const LEGAL_KEY = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Adapts a copy of a function's schema to what vendors accept; what the function accepts is still checked by its own schema. */
export function vendorSchema(parameters: JsonValue): VendorSchema {
  if (!isObject(parameters)) return PERMISSIVE;
  const known = cache.get(parameters);
  if (known !== undefined) return known;
  const adapted = adapt(parameters);
  cache.set(parameters, adapted);
  return adapted;
}

function adapt(parameters: JsonObject): VendorSchema {
  const root = inlineTop(clean(parameters, parameters), 0);
  const { $defs, definitions } = root;
  const shared: JsonObject = { ...(isObject($defs) ? { $defs } : {}), ...(isObject(definitions) ? { definitions } : {}) };
  const types = typesOf(root);
  if (types.length > 0 && !types.includes('object')) {
    const { $defs: _a, definitions: _b, ...value } = root;
    return { schema: { type: 'object', properties: { value }, required: ['value'], ...shared }, wrapped: true };
  }
  const flat = flatten(root);
  return { schema: { ...flat, type: 'object', properties: isObject(flat['properties']) ? flat['properties'] : {} }, wrapped: false };
}

const typesOf = (schema: JsonObject): string[] => {
  const { type } = schema;
  if (typeof type === 'string') return [type];
  return Array.isArray(type) ? type.filter((name): name is string => typeof name === 'string' && name !== 'null') : [];
};

/** Replaces a `$ref` at the top by what it names. */
function inlineTop(schema: JsonObject, depth: number): JsonObject {
  const target = typeof schema['$ref'] === 'string' ? lookUp(schema['$ref'], schema) : undefined;
  const { $ref: _, ...rest } = schema;
  if (target === undefined || depth > 8) return '$ref' in schema ? rest : schema;
  return inlineTop({ ...target, ...rest }, depth + 1);
}

/** Merges unions at the top, which vendors refuse, into one object that allows what each branch allows. */
function flatten(schema: JsonObject): JsonObject {
  const { oneOf, anyOf, allOf, not: _not, enum: _enum, const: _const, if: _if, then: _then, else: _else, ...rest } = schema;
  const either = [oneOf, anyOf].filter(Array.isArray).map((branches) => branches.map((branch) => object(branch, schema)));
  const all = Array.isArray(allOf) ? allOf.map((branch) => object(branch, schema)) : [];
  if (either.length === 0 && all.length === 0) return rest;
  const properties: JsonObject = { ...(isObject(rest['properties']) ? rest['properties'] : {}) };
  const required = new Set(strings(rest['required']));
  for (const branch of all) {
    merge(properties, branch['properties']);
    for (const name of strings(branch['required'])) required.add(name);
  }
  for (const branches of either) {
    for (const branch of branches) merge(properties, branch['properties']);
    const [first, ...others] = branches.map((branch) => strings(branch['required']));
    for (const name of first ?? []) if (others.every((names) => names.includes(name))) required.add(name);
  }
  const { additionalProperties: _, ...open } = rest;
  return { ...open, properties, ...(required.size === 0 ? {} : { required: [...required] }) };
}

function object(branch: JsonValue, root: JsonObject): JsonObject {
  if (!isObject(branch)) return {};
  const target = typeof branch['$ref'] === 'string' ? (lookUp(branch['$ref'], root) ?? {}) : branch;
  return 'oneOf' in target || 'anyOf' in target || 'allOf' in target ? flatten(target) : target;
}

function merge(into: JsonObject, properties: JsonValue | undefined): void {
  if (!isObject(properties)) return;
  for (const [name, schema] of Object.entries(properties)) {
    const present = into[name];
    if (present === undefined) into[name] = schema;
    else if (JSON.stringify(present) !== JSON.stringify(schema)) {
      const known =
        isObject(present) && Array.isArray(present['anyOf']) && Object.keys(present).length === 1 ? present['anyOf'] : [present];
      into[name] = { anyOf: [...known, schema] };
    }
  }
}

/** Copies a schema without what no vendor takes: foreign keywords, malformed ones, references that lead nowhere. */
function clean(schema: JsonObject, root: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === '$schema' || key === '$id' || key === 'id' || key.startsWith('x-') || malformed(key, value)) continue;
    if (key === '$ref' && lookUp(String(value), root) === undefined) continue;
    if (key === 'items' && Array.isArray(value)) copy['prefixItems'] = value.map((item) => cleanOne(item, root));
    else if (MAPS.has(key)) copy[key] = cleanMap(key, value, root);
    else if (LISTS.has(key) && Array.isArray(value)) copy[key] = value.map((item) => cleanOne(item, root));
    else if (ONES.has(key)) copy[key] = cleanOne(value, root);
    else copy[key] = value;
  }
  if (typesOf(copy).includes('array') && !('items' in copy) && !('prefixItems' in copy)) copy['items'] = {};
  if (Array.isArray(copy['required'])) {
    const names = strings(copy['required']).filter((name) => LEGAL_KEY.test(name));
    if (names.length === 0) delete copy['required'];
    else copy['required'] = [...new Set(names)];
  }
  return copy;
}

const cleanOne = (value: JsonValue, root: JsonObject): JsonValue =>
  isObject(value) ? clean(value, root) : typeof value === 'boolean' ? value : {};

function cleanMap(key: string, value: JsonValue, root: JsonObject): JsonObject {
  const entries = isObject(value) ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.filter(([name]) => key !== 'properties' || LEGAL_KEY.test(name)).map(([name, one]) => [name, cleanOne(one, root)]),
  );
}

/** True for a keyword whose value is of the wrong kind, e.g. the draft-04 forms `required: true` and `exclusiveMinimum: true`. */
function malformed(key: string, value: JsonValue): boolean {
  switch (key) {
    case 'type':
      return !(typeof value === 'string'
        ? TYPES.has(value)
        : Array.isArray(value) && value.length > 0 && value.every((name) => TYPES.has(String(name))));
    case 'required':
      return !Array.isArray(value);
    case 'enum':
    case 'oneOf':
    case 'anyOf':
    case 'allOf':
      return !Array.isArray(value) || value.length === 0;
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
    case 'minimum':
    case 'maximum':
      return typeof value !== 'number';
    case 'properties':
      return !isObject(value);
    default:
      return false;
  }
}

/** Follows a local JSON pointer. */
function lookUp(reference: string, root: JsonObject): JsonObject | undefined {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let node: JsonValue | undefined = root;
  for (const step of reference.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    node = isObject(node) ? node[name] : undefined;
  }
  return isObject(node) ? node : undefined;
}

const strings = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
