import type { JsonValue } from '#libs/contracts';

/** True when a request schema takes objects (or says nothing of types). */
function takesObject(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return true;
  const { type, properties } = schema as { type?: unknown; properties?: unknown };
  if (properties !== undefined) return true;
  return type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'));
}

/**
 * Arguments as the target wants them: models write an object as a string now and then, so a string that holds an object
 * is parsed once, where the target's schema wants an object. Nothing else is repaired.
 */
export function fitArguments(value: JsonValue, schema: unknown): JsonValue {
  if (value === '' || value === null) return takesObject(schema) ? {} : value;
  if (typeof value !== 'string' || !takesObject(schema)) return value;
  try {
    const parsed = JSON.parse(value) as JsonValue;
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? parsed : value;
  } catch {
    return value; // not JSON: the target says what is wrong with it
  }
}
