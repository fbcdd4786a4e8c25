import { describe, expect, it } from 'vitest';
import type { JsonValue, OutputContract } from '#libs/contracts';
import { contractFault, valueFault } from './contract.js';
import { deliverableOf } from './deliverable.js';

const any: OutputContract = { type: 'json' };
const object: OutputContract = { type: 'json', schema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] } };

describe('C36 deliverableOf', () => {
  it('hands over the text of a text contract as it is', () => {
    expect(deliverableOf({ type: 'text' }, '```json\n{}\n```')).toEqual({ result: '```json\n{}\n```', result_error: null });
  });

  it.each<[string, string, JsonValue]>([
    ['bare', '{"a":1}', { a: 1 }],
    ['with space around', ' \n{"a":1}\n ', { a: 1 }],
    ['in a fence', '```json\n{"a":1}\n```', { a: 1 }],
    ['in a fence without a language', '```\n{"a":1}\n```\n', { a: 1 }],
    ['in a fence with CRLF', '```json\r\n{"a":1}\r\n```', { a: 1 }],
    ['in a fence that nobody closed', '```json\n{"a":1}', { a: 1 }],
    ['in a fence that nobody closed, with a line break', '```json\n{"a":1}\n', { a: 1 }],
    ['in an indented fence', '  ```json\n{"a":1}\n  ```', { a: 1 }],
    ['with backticks in a text', '```json\n{"a":1,"b":"```x```"}\n```', { a: 1, b: '```x```' }],
    ['with a fence in a text', '{"a":1,"b":"```json\\n{}\\n```"}', { a: 1, b: '```json\n{}\n```' }],
    ['after a byte order mark', '\uFEFF{"a":1}', { a: 1 }],
    ['in a fence after a byte order mark', '\uFEFF```json\n{"a":1}\n```', { a: 1 }],
    ['over several lines', '{\n  "a": 1\n}', { a: 1 }],
  ])('takes JSON %s', (_name, text, value) => {
    expect(deliverableOf(object, text)).toEqual({ result: value, result_error: null });
  });

  it.each<[string, JsonValue]>([
    ['null', null],
    ['false', false],
    ['0', 0],
    ['""', ''],
    ['[]', []],
  ])('takes %s as a result, not as nothing', (text, value) => {
    expect(deliverableOf(any, text)).toEqual({ result: value, result_error: null });
    expect(deliverableOf({ type: 'json', schema: true }, text)).toEqual({ result: value, result_error: null });
  });
  it('takes a bare scalar where the schema wants one', () => {
    expect(deliverableOf({ type: 'json', schema: { type: 'number' } }, '7')).toEqual({ result: 7, result_error: null });
    expect(deliverableOf({ type: 'json', schema: { type: 'null' } }, 'null')).toEqual({ result: null, result_error: null });
  });

  it.each<[string, string]>([
    ['prose', 'The answer is 4.'],
    ['prose before', 'Here it is: {"a":1}'],
    ['prose after', '{"a":1} as you asked'],
    ['prose around a fence', 'So:\n```json\n{"a":1}\n```\nDone.'],
    ['two values', '{"a":1}{"a":2}'],
    ['two fences', '```json\n{"a":1}\n```\n```json\n{"a":2}\n```'],
    ['half a value', '{"a":1'],
    ['nothing', ''],
    ['an empty fence', '```json\n```'],
  ])('leaves %s to the nudge, with the text as the result', (_name, text) => {
    const { result, result_error } = deliverableOf(object, text);
    expect(result).toBe(text);
    expect(result_error).toMatch(/^the answer is /);
  });

  it('names the field that does not meet the schema', () => {
    expect(deliverableOf(object, '{"a":"x"}')).toEqual({
      result: '{"a":"x"}',
      result_error: expect.stringContaining('a must be number') as string,
    });
    expect(deliverableOf(object, '{}').result_error).toContain('a is missing');
  });

  it('takes linear time on text that goes on and on', () => {
    const startedAt = performance.now();
    for (const text of [
      `\`\`\`json${'\n'.repeat(300_000)}x`,
      `\`\`\`json\n${'\n   '.repeat(100_000)}`,
      `\`\`\`json\n${'\n```  '.repeat(60_000)}x`,
      ' '.repeat(300_000),
    ])
      deliverableOf(object, text);
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });
});

describe('C37 the schema of a contract', () => {
  it.each<[string, OutputContract]>([
    ['text', { type: 'text' }],
    ['no schema', any],
    ['null', { type: 'json', schema: null }],
    ['anything', { type: 'json', schema: true }],
    ['vendor keywords', { type: 'json', schema: { 'x-foo': 1, type: 'object' } }],
    ['an unknown format', { type: 'json', schema: { type: 'string', format: 'isbn' } }],
    [
      'references',
      {
        type: 'json',
        schema: { definitions: { n: { type: 'object', properties: { next: { $ref: '#/definitions/n' } } } }, $ref: '#/definitions/n' },
      },
    ],
    ['a list', { type: 'json', schema: { type: 'array', items: { oneOf: [{ type: 'number' }, { type: 'null' }] } } }],
    ['another draft', { type: 'json', schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' } }],
  ])('can be used with %s', (_name, contract) => {
    expect(contractFault(contract)).toBeNull();
  });
  it.each<[string, JsonValue]>([
    ['an unknown type', { type: 'nope' }],
    ['a broken pattern', { pattern: '(' }],
    ['a reference to nothing', { $ref: '#/definitions/x' }],
    ['text', 'object'],
    ['a list', []],
    ['false', false],
  ])('is refused with %s', (_name, schema) => {
    expect(contractFault({ type: 'json', schema })).toMatch(/^(must be|is not a usable) /);
  });
  it('is checked in full, unions too', () => {
    const contract: OutputContract = { type: 'json', schema: { oneOf: [{ type: 'number' }, { type: 'object', required: ['b'] }] } };
    expect(valueFault(contract, 1)).toBeNull();
    expect(valueFault(contract, { b: 1 })).toBeNull();
    expect(valueFault(contract, {})).not.toBeNull();
  });
});
