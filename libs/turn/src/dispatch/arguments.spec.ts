import { describe, expect, it } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import { fitArguments } from './arguments.js';

const object = { type: 'object', properties: { a: { type: 'number' } } };
const string = { type: 'string' };

describe('C25 fitArguments', () => {
  it.each<[string, JsonValue, unknown, JsonValue]>([
    ['an object as text for a target that wants an object', '{"a":1}', object, { a: 1 }],
    ['an object as text for a target without a schema', '{"a":1}', undefined, { a: 1 }],
    ['an object as text for a target that takes several types', '{"a":1}', { type: ['object', 'null'] }, { a: 1 }],
    ['an object as text for a target that names properties only', '{"a":1}', { properties: {} }, { a: 1 }],
    ['an object as text for a target that takes anything', '{"a":1}', true, { a: 1 }],
    ['text that looks like JSON for a target that wants a text', '{"a":1}', string, '{"a":1}'],
    ['text that looks like JSON for a target that wants a list', '[1]', { type: 'array' }, '[1]'],
    ['a list as text for a target that wants an object', '[1]', object, '[1]'],
    ['text that holds text that holds an object: parsed once', JSON.stringify('{"a":1}'), object, JSON.stringify('{"a":1}')],
    ['broken text', '{"a":', object, '{"a":'],
    ['plain text', 'hello', object, 'hello'],
    ['empty text', '', object, {}],
    ['null', null, object, {}],
    ['empty text for a target that wants a text', '', string, ''],
    ['null for a target that wants a text', null, string, null],
    ['a number', 7, object, 7],
    ['an object, whatever its fields hold', { a: '{"b":1}' }, object, { a: '{"b":1}' }],
  ])('%s', (_name, value, schema, fitted) => {
    expect(fitArguments(value, schema)).toEqual(fitted);
  });
});
