import type { JsonObject, JsonValue } from '#libs/contracts';

/** Keywords that limit values; vendors enforce structure only. The result is checked against the full schema later. */
const LIMITS = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'format',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'default',
  'examples',
  'title',
  '$schema',
  '$id',
  'nullable',
]);
/** Keywords that no vendor can enforce. */
const UNSUPPORTED = new Set([
  'not',
  'if',
  'then',
  'else',
  'patternProperties',
  'propertyNames',
  'contains',
  'dependentSchemas',
  'dependentRequired',
  'dependencies',
  'prefixItems',
  'unevaluatedProperties',
]);

/**
 * A copy of an output schema that a vendor can enforce: objects are closed, `oneOf` is `anyOf`, limits of values are left
 * out. Undefined when the schema needs what cannot be enforced: an open object, recursion, a condition.
 */
export function outputSchema(schema: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(schema)) return undefined;
  try {
    const copy = closed(schema);
    return isRecursive(schema) ? undefined : copy;
  } catch (error) {
    if (error instanceof NotEnforceable) return undefined;
    throw error;
  }
}

/** True when every property of every object is required: what the strict mode of OpenAI asks for beyond the rest. */
export function allRequired(schema: JsonValue): boolean {
  if (Array.isArray(schema)) return schema.every(allRequired);
  if (!isObject(schema)) return true;
  const { properties, required } = schema;
  if (isObject(properties) && !Object.keys(properties).every((name) => Array.isArray(required) && required.includes(name))) return false;
  return Object.entries(schema).every(([key, value]) => key === 'enum' || key === 'const' || allRequired(value));
}

class NotEnforceable extends Error {}

function closed(schema: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (LIMITS.has(key) || key.startsWith('x-')) continue;
    if (UNSUPPORTED.has(key) || Array.isArray(schema['items'])) throw new NotEnforceable(key);
    switch (key) {
      case 'properties':
      case '$defs':
      case 'definitions':
        if (isObject(value)) copy[key] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, sub(one)]));
        break;
      case 'oneOf':
      case 'anyOf':
      case 'allOf':
        if (Array.isArray(value)) copy[key === 'oneOf' ? 'anyOf' : key] = value.map(sub);
        break;
      case 'items':
        copy[key] = sub(value);
        break;
      case '$ref':
        if (typeof value !== 'string' || !/^#\/(\$defs|definitions)\//.test(value)) throw new NotEnforceable(key);
        copy[key] = value;
        break;
      case 'additionalProperties':
        if (value !== false) throw new NotEnforceable(key);
        break;
      default:
        copy[key] = value;
    }
  }
  const types = [copy['type']].flat();
  if (types.includes('object') || 'properties' in copy) {
    if (!('properties' in copy)) throw new NotEnforceable('an object without properties');
    copy['additionalProperties'] = false;
  }
  if (types.includes('array') && !('items' in copy)) throw new NotEnforceable('an array without items');
  return copy;
}

function sub(schema: JsonValue): JsonObject {
  if (!isObject(schema) || Object.keys(schema).length === 0) throw new NotEnforceable('a schema that allows anything');
  return closed(schema);
}

/** True when a definition reaches itself. */
function isRecursive(root: JsonObject): boolean {
  const definitions: JsonObject = { ...asObject(root['$defs']), ...asObject(root['definitions']) };
  const reaches = (node: JsonValue, path: readonly string[]): boolean => {
    if (Array.isArray(node)) return node.some((item) => reaches(item, path));
    if (!isObject(node)) return false;
    return Object.entries(node).some(([key, value]) => {
      if (key !== '$ref' || typeof value !== 'string') return reaches(value, path);
      const name = value.split('/').at(-1) ?? '';
      const target = definitions[name];
      return path.includes(name) || (target !== undefined && reaches(target, [...path, name]));
    });
  };
  return Object.entries(definitions).some(([name, schema]) => reaches(schema, [name]));
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const asObject = (value: JsonValue | undefined): JsonObject => (isObject(value) ? value : {});
