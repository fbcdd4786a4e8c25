/** A JSON Schema (draft-07) object, or `true`. */
export type Schema = boolean | { readonly [keyword: string]: unknown };

/** What a function publishes about itself. */
export interface FunctionContract {
  description: string;
  request: Schema;
  response: Schema;
}

/** A reference to a definition of the same schema. */
export const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` });

/** Makes a published root schema of `schema`: adds the draft and those definitions of `pool` that it reaches. */
export function root(pool: { [name: string]: Schema }, schema: Schema): Schema {
  const reached: { [name: string]: Schema } = {};
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const item of node) visit(item);
    } else if (typeof node === 'object' && node !== null) {
      for (const [key, value] of Object.entries(node)) {
        if (key === '$ref' && typeof value === 'string') reach(value.slice('#/definitions/'.length));
        else visit(value);
      }
    }
  };
  const reach = (name: string): void => {
    const definition = pool[name];
    if (definition === undefined) throw new Error(`schema definition ${name} is missing`);
    if (name in reached) return;
    reached[name] = definition;
    visit(definition);
  };
  visit(schema);
  const definitions = Object.keys(reached).length > 0 ? { definitions: reached } : {};
  return { $schema: 'http://json-schema.org/draft-07/schema#', ...(schema as object), ...definitions };
}
