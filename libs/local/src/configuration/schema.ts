import type { JsonValue } from '#libs/contracts';

/** A JSON Schema of ours, as an object. */
export type ObjectSchema = { readonly [keyword: string]: unknown };
/** The JSON Schema of the value of a field. */
export type FieldSchema = ObjectSchema;

interface FieldDescription {
  schema: FieldSchema | undefined;
  description: string | undefined;
}

const fieldsByClass = new WeakMap<object, Map<string, FieldDescription>>();

/** Notes what a field of a class takes; the decorators of the fields call it. */
export function describeField(prototype: object, key: string, description: FieldDescription): void {
  const fields = fieldsByClass.get(prototype) ?? new Map<string, FieldDescription>();
  fieldsByClass.set(prototype, fields.set(key, description));
}

/** The JSON Schema of a mapping with the fields of a class: from the same rules that check them. */
export function schemaOf(make: new () => object): ObjectSchema {
  const defaults = new make() as { [key: string]: unknown };
  const fields = [...(fieldsByClass.get(make.prototype as object) ?? [])];
  const properties = Object.fromEntries(
    fields.map(([key, { schema, description }]) => {
      const value = defaultOf(defaults[key]);
      return [
        key,
        { ...(description === undefined ? {} : { description }), ...schema, ...(value === undefined ? {} : { default: value }) },
      ];
    }),
  );
  return { type: 'object', properties, additionalProperties: false };
}

/** A default as JSON, without what is not given. */
function defaultOf(value: unknown): JsonValue | undefined {
  if (value === undefined) return undefined;
  return JSON.parse(JSON.stringify(value instanceof Map ? Object.fromEntries(value) : value)) as JsonValue;
}
