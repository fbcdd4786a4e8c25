import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import { AnthropicProviderModule, OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { vendorSchema } from '../../libs/local/src/providers/shared/tool-schema.js';
import { assistant, ProviderBench, result, user } from '../support/provider-bench.js';
import { anthropicStream, chatStream, responsesStream } from '../support/vendor-scripts.js';
import { VendorServer } from '../support/vendor-server.js';

const SCHEMAS: { [name: string]: JsonValue } = {
  none: null,
  any: true,
  empty: {},
  'without a type': { properties: { a: { type: 'string' } }, required: ['a'] },
  'of a list': { type: 'array', items: { type: 'string' } },
  'of a text': { type: 'string', enum: ['a', 'b'] },
  'with a union at the top': {
    oneOf: [
      { type: 'object', properties: { a: { type: 'string' }, k: { type: 'string' } }, required: ['k', 'a'] },
      { type: 'object', properties: { b: { type: 'number' }, k: { type: 'number' } }, required: ['k', 'b'] },
    ],
  },
  'with all of something': {
    allOf: [{ $ref: '#/definitions/base' }, { properties: { b: { type: 'string' } }, required: ['b'] }],
    definitions: { base: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } },
  },
  'with a reference at the top': {
    $ref: '#/$defs/input',
    $defs: { input: { type: 'object', properties: { child: { $ref: '#/$defs/input' } } } },
  },
  'with a reference to nowhere': {
    type: 'object',
    properties: { a: { $ref: 'https://example.test/schema.json' }, b: { $ref: '#/definitions/none' } },
  },
  'that names a draft': {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: 'x',
    type: 'object',
    properties: { a: { type: 'string', 'x-foo': 1, format: 'odd', nullable: true } },
    'x-bar': true,
  },
  'of an old draft': {
    type: 'object',
    properties: { n: { type: 'number', minimum: 1, exclusiveMinimum: true, required: true as never } },
    required: [],
  },
  'with a tuple': {
    type: 'object',
    properties: { t: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] }, l: { type: 'array' } },
  },
  'with an empty enum and an unknown type': {
    type: 'object',
    properties: { e: { enum: [] }, f: { type: 'file' }, g: { type: ['string', 'null'] } },
  },
  'with odd property names': {
    type: 'object',
    properties: { 'naïve name': { type: 'string' }, ok: { type: 'string' } },
    required: ['naïve name', 'ok'],
  },
  'that may be null': { type: ['object', 'null'], properties: {}, default: null },
  'with conditions': JSON.parse(
    '{"type":"object","properties":{"a":{"type":"string"}},"if":{"required":["a"]},"then":{"required":["b"]},"not":{"required":["c"]}}',
  ) as JsonValue,
  'of itself': { type: 'object', properties: { again: { $ref: '#' } } },
};

describe('C37 function schemas', () => {
  let server: VendorServer;
  const benches: { bench: ProviderBench; model: string; options?: { api: string }; answer: () => ReturnType<typeof chatStream> }[] = [];
  beforeAll(async () => {
    server = await VendorServer.start();
    const anthropic = await ProviderBench.start('anthropic', AnthropicProviderModule, server);
    const openai = await ProviderBench.start('openai', OpenAiProviderModule, server, '/v1');
    benches.push(
      { bench: anthropic, model: 'claude-sonnet-4-5', answer: () => anthropicStream([{ text: 'ok' }]) },
      { bench: openai, model: 'gpt-4o', options: { api: 'chat' }, answer: () => chatStream([{ text: 'ok' }]) },
      { bench: openai, model: 'gpt-5', options: { api: 'responses' }, answer: () => responsesStream([{ text: 'ok' }]) },
    );
  });
  afterAll(async () => {
    for (const { bench } of benches.slice(0, 2)) await bench.close();
    await server.close();
  });

  it.each(Object.keys(SCHEMAS))('%s are adapted to what each vendor takes', async (name) => {
    const before = JSON.stringify(SCHEMAS[name]);
    for (const { bench, model, options, answer } of benches) {
      server.script({ events: answer() });
      await bench.run({ model, provider_options: options, tools: [{ name: 'a::b', description: 'd', parameters: SCHEMAS[name] ?? null }] });
      expect(server.requests.at(-1)?.violation).toBeNull();
    }
    expect(JSON.stringify(SCHEMAS[name])).toBe(before);
  });

  it('that need nothing stay as they are', () => {
    const schema = {
      type: 'object',
      properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] }, d: { type: 'string', default: 'x' } },
      required: ['a'],
      additionalProperties: false,
    };
    expect(vendorSchema(schema)).toEqual({ schema, wrapped: false });
  });

  it('that are unions allow what each branch allows and ask for what all ask for', () => {
    expect(vendorSchema(SCHEMAS['with a union at the top'] ?? null).schema).toEqual({
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'number' }, k: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
      required: ['k'],
    });
    expect(vendorSchema(SCHEMAS['with all of something'] ?? null).schema).toMatchObject({
      properties: { a: {}, b: {} },
      required: ['a', 'b'],
    });
  });

  it('of a list are wrapped on the wire and nowhere else', async () => {
    const { bench, model } = benches[0] as (typeof benches)[number];
    server.script(
      { events: anthropicStream([{ call: 'list__add', id: 'c1', args: { value: ['x'] } }]) },
      { events: anthropicStream([{ text: 'ok' }]) },
    );
    const tools = [{ name: 'list::add', description: 'd', parameters: { type: 'array', items: { type: 'string' } } }];
    const { message } = await bench.run({ model, tools });
    expect(message.content).toMatchObject([{ function_id: 'list::add', arguments: ['x'] }]);
    await bench.run({ model, tools, messages: [user('go'), assistant(message.content), result('c1', 'ok')] });
    expect(server.lastBody['messages']).toMatchObject([{}, { content: [{ type: 'tool_use', input: { value: ['x'] } }] }, {}]);
  });
});
