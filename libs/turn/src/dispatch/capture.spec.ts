import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonValue, textOf } from '#libs/contracts';
import { capResult, captureResult, toJson } from './capture.js';

const textFor = (value: unknown): string => textOf(captureResult(value).content);
const bytesOf = (result: ReturnType<typeof captureResult>): number => Buffer.byteLength(JSON.stringify([result.content, result.details]));

const cyclic: { name: string; self?: unknown } = { name: 'x' };
cyclic.self = cyclic;

describe('captureResult', () => {
  it.each<[string, unknown, string]>([
    ['undefined', undefined, '(no output)'],
    ['null', null, 'null'],
    ['an empty text', '', '(no output)'],
    ['blank text', ' \n', '(no output)'],
    ['a text', 'hello', 'hello'],
    ['zero', 0, '0'],
    ['false', false, 'false'],
    ['NaN', Number.NaN, 'NaN'],
    ['infinity', Number.POSITIVE_INFINITY, 'Infinity'],
    ['a BigInt', 12n, '12'],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a date that is none', new Date(Number.NaN), 'Invalid Date'],
    ['a buffer', Buffer.from('hi'), '{"base64":"aGk="}'],
    ['a view into a larger buffer', new Uint8Array([9, 104, 105, 9]).subarray(1, 3), '{"base64":"aGk="}'],
    ['an error', new Error('it broke'), '{"error":"it broke"}'],
    ['a cycle', cyclic, '{"name":"x","self":"[circular]"}'],
    ['the same object twice', [cyclic.name, { a: 1 }], '["x",{"a":1}]'],
    ['a map', new Map([['a', 1]]), '[["a",1]]'],
    ['a set', new Set([1, 2]), '[1,2]'],
    ['a function', () => 1, '[function]'],
    ['a symbol', Symbol('s'), '[symbol]'],
    ['what says how it is JSON', { toJSON: () => ({ a: 1 }) }, '{"a":1}'],
    ['missing fields', { a: undefined, b: [undefined] }, '{"b":[null]}'],
    ['half a surrogate pair', 'a\ud800b', 'a\ufffdb'],
    ['half a pair in a key', { '\udc00': '\ud800' }, '{"\ufffd":"\ufffd"}'],
    ['a key that is special', JSON.parse('{"__proto__": 1}'), '{"__proto__":1}'],
  ])('C27 gives one readable block for %s', (_name, value, text) => {
    const result = captureResult(value);
    expect(result.content).toEqual([{ type: 'text', text }]);
    expect(result.is_error).toBe(false);
    expect(JSON.parse(JSON.stringify(result))).toEqual(result);
  });

  it('keeps an object as details, and nothing else', () => {
    expect(captureResult({ a: 1 }).details).toEqual({ a: 1 });
    expect(captureResult([1]).details).toEqual([1]);
    expect(captureResult('x').details).toBeNull();
  });

  it('shows an object that is there twice twice', () => {
    const shared = { a: 1 };
    expect(toJson([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
  });

  it('C17 takes blocks as they are, blank ones with a placeholder', () => {
    const image = { type: 'image', data: 'aGk=', mime: 'image/png' };
    expect(captureResult({ content: [{ type: 'text', text: '' }, image], is_error: true, details: { d: 1 } })).toEqual({
      content: [{ type: 'text', text: '(no output)' }, image],
      details: { d: 1 },
      is_error: true,
    });
    expect(captureResult({ content: [{ type: 'text', text: 'x' }], more: 1 }).details).toEqual({ more: 1 });
  });

  it.each<[string, JsonValue]>([
    ['no blocks', []],
    ['text', 'hello'],
    ['a call', [{ type: 'function_call', id: 'a', function_id: 'b', arguments: {} }]],
    ['an image without data', [{ type: 'image', mime: 'x' }]],
  ])('takes content that is %s as a plain value', (_name, content) => {
    expect(textFor({ content })).toBe(JSON.stringify({ content }));
  });

  it('gives one result for any value at all', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withTypedArray: true,
          withNullPrototype: true,
          withSparseArray: true,
        }),
        (value) => {
          const result = captureResult(value);
          expect(textOf(result.content).trim()).not.toBe('');
          expect(JSON.stringify(result).isWellFormed()).toBe(true);
        },
      ),
    );
  });
});

describe('capResult', () => {
  it('leaves what fits alone, and everything when there is no limit', () => {
    const small = captureResult('hello');
    expect(capResult(small, 1024)).toBe(small);
    const large = captureResult('x'.repeat(10_000));
    expect(capResult(large, 0)).toBe(large);
  });

  it('counts a limit of 1 to 1023 as 1024', () => {
    const result = captureResult('x'.repeat(900));
    expect(capResult(result, 1)).toBe(result);
    expect(capResult(captureResult('x'.repeat(2_000)), 5).details).toMatchObject({ result_capped: { max_bytes: 1024 } });
  });

  it('keeps a field by the name __proto__ as a field', () => {
    expect(JSON.stringify(toJson(JSON.parse('{"__proto__":{"a":1},"b":2}')))).toBe('{"__proto__":{"a":1},"b":2}');
  });

  it('C32 keeps the start and the end of 20 MB, with a mark, in little time', () => {
    const value = `START${'x'.repeat(20_000_000)}END`;
    const startedAt = performance.now();
    const capped = capResult(captureResult(value), 262_144);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    const text = textOf(capped.content);
    expect(text).toMatch(/^<omitted: the result has 19531 KB, the limit is 256 KB; its middle is left out here>\nSTART/);
    expect(text.endsWith('END')).toBe(true);
    expect(bytesOf(capped)).toBeLessThanOrEqual(262_144);
    expect(capped.details).toEqual({ result_capped: { original_bytes: 20_000_008, max_bytes: 262_144 } });
  });

  it.each<[string, unknown]>([
    ['lines', Array.from({ length: 5_000 }, (_, line) => `line ${line} ${'.'.repeat(80)}`).join('\n')],
    ['what looks binary', '\u0000\u0001\u001b'.repeat(50_000)],
    ['three-byte letters', '語'.repeat(100_000)],
    ['emoji', '😀'.repeat(100_000)],
    ['large details', { content: [{ type: 'text', text: 'short' }], details: { x: 'y'.repeat(100_000) } }],
    ['a large image', { content: [{ type: 'image', mime: 'image/png', data: 'A'.repeat(100_000) }] }],
    ['an error', { content: [{ type: 'text', text: 'e'.repeat(100_000) }], is_error: true }],
  ])('C32 bounds %s', (_name, value) => {
    const given = captureResult(value);
    const capped = capResult(given, 20_000);
    expect(bytesOf(capped)).toBeLessThanOrEqual(20_000);
    expect(textOf(capped.content)).toContain('<omitted: the result has');
    expect(capped.is_error).toBe(given.is_error);
    expect(JSON.stringify(capped)).not.toContain('\ufffd');
  });

  it('keeps under the limit whatever the text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.integer({ min: 1, max: 4_000 }),
        fc.integer({ min: 1024, max: 4_096 }),
        (unit, times, limit) => {
          expect(bytesOf(capResult(captureResult(unit.repeat(times)), limit))).toBeLessThanOrEqual(limit);
        },
      ),
    );
  });

  it('reads an object that is shared exponentially often only so far', () => {
    let shared: unknown = ['leaf'];
    for (let depth = 0; depth < 40; depth += 1) shared = [shared, shared];
    expect(captureResult(shared).is_error).toBe(false);
  });
});
