import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Schema } from '#libs/contracts';
import { violation } from '#libs/iii';
import { withoutDescriptions } from '../../../../test/support/wire.js';
import { messageSchema, schemas } from './schemas.js';

interface Published {
  name: string;
  request_schema: unknown;
  response_schema: unknown;
}
const wire = JSON.parse(readFileSync(new URL('../../../../test/fixtures/wire/context.json', import.meta.url), 'utf8')) as {
  functions: Published[];
};
const ours: { [name: string]: { request: Schema; response: Schema } } = {
  'context::assemble': schemas.assemble,
  'context::compact': schemas.compact,
  'context::prune': schemas.prune,
  'context::count-tokens': schemas.countTokens,
};

/** The one thing that we take and the contract does not name: thinking that only its provider can read. */
function withoutRedacted(schema: unknown): unknown {
  const copy = structuredClone(withoutDescriptions(schema)) as { definitions?: { ContentBlock?: { oneOf: object[] } } };
  const blocks = copy.definitions?.ContentBlock;
  if (blocks !== undefined) blocks.oneOf = blocks.oneOf.filter((block) => !JSON.stringify(block).includes('redacted_thinking'));
  return copy;
}

describe('context::*', () => {
  it.each(wire.functions)('$name has the schemas of the contract', ({ name, request_schema, response_schema }) => {
    expect(withoutRedacted(ours[name]?.request)).toEqual(request_schema);
    expect(withoutRedacted(ours[name]?.response)).toEqual(response_schema);
  });

  it('is all there', () => {
    expect(wire.functions.map(({ name }) => name)).toEqual(Object.keys(ours));
  });

  it('takes every message that a session may hold', () => {
    const thinking = { type: 'redacted_thinking', data: 'x' };
    expect(
      violation(messageSchema, { role: 'assistant', content: [thinking], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 1 }),
    ).toBeNull();
    expect(
      violation(messageSchema, { role: 'function_result', content: [], function_call_id: 'c', function_id: 'f', timestamp: 1 }),
    ).toBeNull();
    expect(violation(messageSchema, { role: 'user', content: 'text', timestamp: 1 })).toContain('content');
  });
});
