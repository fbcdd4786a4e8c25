import type { Schema } from '#libs/contracts';

const scope: Schema = { type: 'string', minLength: 1, maxLength: 1_024, description: 'Group of keys, e.g. "orders".' };
const key: Schema = { type: 'string', minLength: 1, maxLength: 4_096, description: 'Name of the value within its scope.' };
const object = (properties: { [field: string]: Schema }, required: string[] = []): Schema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties,
  required,
});
const field: Schema = { type: 'string', description: 'One key of the value, taken literally; empty is the whole value.' };
const path: Schema = {
  anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }],
  description: 'A key, a list of keys on the way down, or nothing for the whole value.',
};
const op = (type: string, properties: { [name: string]: Schema }, required: string[]): Schema => ({
  type: 'object',
  properties: { type: { enum: [type], type: 'string' }, ...properties },
  required: ['type', ...required],
});
const number: Schema = { type: 'number' };

/** Request and response schemas of the state functions. */
export const stateSchemas = {
  set: {
    request: object({ scope, key, value: { description: 'Any JSON value.' }, data: { description: 'The same as value.' } }, [
      'key',
      'scope',
    ]),
    response: object({ old_value: true, new_value: true }, ['new_value', 'old_value']),
  },
  get: { request: object({ scope, key }, ['key', 'scope']), response: true },
  delete: { request: object({ scope, key }, ['key', 'scope']), response: true },
  update: {
    request: object(
      {
        scope,
        key,
        ops: {
          type: 'array',
          maxItems: 1_000,
          items: {
            oneOf: [
              op('set', { path: field, value: true }, ['path']),
              op('merge', { path, value: true }, ['value']),
              op('increment', { path: field, by: number }, ['by', 'path']),
              op('decrement', { path: field, by: number }, ['by', 'path']),
              op('append', { path, value: true }, ['value']),
              op('remove', { path: field }, ['path']),
            ],
          },
        },
      },
      ['key', 'ops', 'scope'],
    ),
    response: object(
      {
        old_value: true,
        new_value: true,
        errors: {
          type: 'array',
          items: object({ op_index: { type: 'integer' }, code: { type: 'string' }, message: { type: 'string' } }, [
            'code',
            'message',
            'op_index',
          ]),
        },
      },
      ['new_value', 'old_value'],
    ),
  },
  list: { request: object({ scope }, ['scope']), response: { type: 'array' } },
  listGroups: { request: object({}), response: object({ groups: { type: 'array', items: { type: 'string' } } }, ['groups']) },
  listKeys: { request: object({ scope }, ['scope']), response: object({ keys: { type: 'array', items: { type: 'string' } } }, ['keys']) },
  listEntries: {
    request: object(
      {
        scope,
        cursor: { type: ['string', 'null'], description: 'next_cursor of the page before.' },
        limit: { type: ['integer', 'null'], minimum: 1, maximum: 1_000, default: 100 },
        max_bytes: { type: ['integer', 'null'], minimum: 256, maximum: 8_000_000, default: 1_000_000 },
      },
      ['scope'],
    ),
    response: object(
      {
        entries: { type: 'array', items: object({ key: { type: 'string' }, value: true }, ['key', 'value']) },
        next_cursor: { type: ['string', 'null'] },
        done: { type: 'boolean' },
        offset: { type: 'integer' },
        total: { type: 'integer' },
      },
      ['done', 'entries', 'next_cursor', 'offset', 'total'],
    ),
  },
} satisfies { [name: string]: { request: Schema; response: Schema } };
