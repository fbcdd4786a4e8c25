import { describe, expect, it } from 'vitest';
import { harnessFunctions, type Schema } from '#libs/contracts';
import { violation } from './validation.js';

const send = (payload: unknown): string | null => violation(harnessFunctions['harness::send'].request, payload);

describe('violation', () => {
  it.each<[string, Schema, unknown, string | null]>([
    ['what fits', { type: 'object' }, {}, null],
    ['anything', true, 7, null],
    ['nothing', false, {}, 'request must be empty'],
    ['a missing field', { type: 'object', required: ['a'] }, {}, 'a is missing'],
    ['a wrong type', { type: 'object', properties: { a: { type: 'string' } } }, { a: 1 }, 'a must be string'],
    ['a wrong type of several', { type: 'object', properties: { a: { type: ['string', 'null'] } } }, { a: 1 }, 'a must be string or null'],
    ['the wrong root', { type: 'object' }, 'x', 'request must be object'],
    ['an unknown value', { type: 'object', properties: { a: { enum: ['x', 'y'] } } }, { a: 'z' }, 'a must be one of "x", "y"'],
    ['an unknown field', { type: 'object', properties: {}, additionalProperties: false }, { b: 1 }, 'b is not a known field'],
    [
      'a nested field',
      { type: 'object', properties: { a: { type: 'array', items: { type: 'object', required: ['b'] } } } },
      { a: [{ b: 1 }, {}] },
      'a.1.b is missing',
    ],
    ['a number that is too small', { type: 'object', properties: { a: { type: 'integer', minimum: 0 } } }, { a: -1 }, 'a must be >= 0'],
    ['several faults', { type: 'object', required: ['a', 'b'] }, {}, 'a is missing; b is missing'],
  ])('tells of %s', (_name, schema, value, told) => {
    expect(violation(schema, value)).toBe(told);
  });

  it('changes nothing in the value', () => {
    const value = Object.freeze({ a: 1 });
    expect(violation({ type: 'object', properties: { b: { type: 'number', default: 3 } } }, value)).toBeNull();
    expect(value).toEqual({ a: 1 });
  });

  it('knows formats that nobody checks, and takes each schema again', () => {
    const schema: Schema = { type: 'integer', format: 'uint64', minimum: 0 };
    expect(violation(schema, 1)).toBeNull();
    expect(violation(schema, -1)).toBe('request must be >= 0');
  });
});

describe('violation of the requests of the contract', () => {
  const block = (content: unknown) => send({ model: 'm', message: { role: 'user', content, timestamp: 1 } });

  it.each<[unknown, string]>([
    [{}, 'message is missing; model is missing'],
    [{ message: 'hi' }, 'model is missing'],
    [{ message: 'hi', model: 7 }, 'model must be string'],
    [{ message: 'hi', model: 'm', session_id: 7 }, 'session_id must be string or null'],
    [{ message: 'hi', model: 'm', options: { max_turns: -1 } }, 'options.max_turns must be >= 0'],
    [{ message: 'hi', model: 'm', options: { max_turns: 'two' } }, 'options.max_turns must be integer or null'],
    [{ message: 'hi', model: 'm', options: { functions: { allow: 'coder::*' } } }, 'options.functions.allow must be array'],
    [{ message: 'hi', model: 'm', options: { functions: { allow: ['a', 1] } } }, 'options.functions.allow.1 must be string'],
    [
      { message: 'hi', model: 'm', options: { functions: { expose: 'all' } } },
      'options.functions.expose must be one of "agent_trigger", "native"',
    ],
    [{ message: 'hi', model: 'm', options: { mode: 'plain' } }, 'options.mode must be one of "plan", "ask", "agent"'],
    [
      { message: 'hi', model: 'm', options: { thinking_level: 'max' } },
      'options.thinking_level must be one of "minimal", "low", "medium", "high", "xhigh"',
    ],
    [{ message: 'hi', model: 'm', options: { output: { type: 'yaml' } } }, 'options.output.type must be one of "text", "json"'],
  ])('%j: %s', (payload, told) => {
    expect(send(payload)).toBe(told);
  });

  it('names the field inside the branch that was meant', () => {
    expect(block([{ type: 'text' }])).toBe('message.content.0.text is missing');
    expect(
      block([
        { type: 'text', text: 'x' },
        { type: 'image', data: 'aGk=' },
      ]),
    ).toBe('message.content.1.mime is missing');
    expect(block([{ type: 'image', data: 7, mime: 'image/png' }])).toBe('message.content.0.data must be string');
    expect(block('hi')).toBe('message.content must be array');
    expect(send({ model: 'm', message: { role: 'user', content: [] } })).toBe('message.timestamp is missing');
    expect(send({ model: 'm', message: { role: 'custom', content: [], timestamp: 1 } })).toBe('message.custom_type is missing');
  });

  it('lists what a block or a role may be when it is none of them', () => {
    expect(block([{ type: 'video' }])).toBe(
      'message.content.0.type must be one of "text", "image", "thinking", "redacted_thinking", "function_call", "function_result"',
    );
    expect(send({ model: 'm', message: { role: 'system', content: [], timestamp: 1 } })).toMatch(/^message\.role must be one of .*"user"/);
  });
});

describe('violation of unions', () => {
  const of = (...anyOf: Schema[]): Schema => ({
    type: 'object',
    properties: { a: { anyOf } },
    definitions: {
      n: { type: 'object', properties: { next: { anyOf: [{ $ref: '#/definitions/n' }, { type: 'null' }] } }, required: ['next'] },
    },
  });

  it.each<[string, Schema, unknown, string]>([
    ['of types', of({ type: 'string' }, { type: 'array' }), 7, 'a must be string or array'],
    ['with null', of({ type: 'string', minLength: 2 }, { type: 'null' }), 'x', 'a must NOT have fewer than 2 characters'],
    ['of values', of({ const: 'x', type: 'string' }, { type: 'number' }), 'y', 'a must be "x"'],
    [
      'of untagged objects: the nearest',
      of({ type: 'object', required: ['x', 'y'] }, { type: 'object', required: ['z'] }),
      {},
      'a.z is missing',
    ],
    [
      'of tagged objects without the tag',
      of(
        { type: 'object', properties: { kind: { const: 'x' } }, required: ['kind'] },
        { type: 'object', properties: { kind: { const: 'y' } }, required: ['kind'] },
      ),
      {},
      'a.kind is missing',
    ],
    ['in unions', of({ anyOf: [{ type: 'string' }, { type: 'number' }] }, { type: 'null' }), [], 'a must be string or number or null'],
    ['that refer to themselves', of({ $ref: '#/definitions/n' }), { next: { next: {} } }, 'a.next.next.next is missing'],
    [
      'that refer to what cannot stand alone',
      of({ type: 'object', required: ['b'], properties: { b: { $ref: '#/properties/a' } } }, { type: 'null' }),
      {},
      'a fits none of its alternatives',
    ],
  ])('%s', (_name, schema, value, told) => {
    expect(violation(schema, { a: value })).toBe(told);
  });

  it('of which more than one fits where one must', () => {
    expect(violation({ type: 'object', properties: { a: { oneOf: [{ type: 'number' }, { type: 'integer' }] } } }, { a: 1 })).toBe(
      'a fits more than one of its alternatives',
    );
  });
  it('at the root', () => {
    expect(violation({ anyOf: [{ type: 'string' }, { type: 'object', required: ['a'] }] }, {})).toBe('a is missing');
    expect(violation({ anyOf: [{ type: 'string' }, { type: 'object' }] }, 7)).toBe('request must be string or object');
  });
});
