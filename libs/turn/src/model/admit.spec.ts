import { describe, expect, it } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import { admitMessage, admitPartial, admitUsage } from './admit.js';

const defaults = { model: 'm', provider: 'p', now: 7 };
const good = {
  role: 'assistant',
  content: [],
  model: 'model',
  provider: 'provider',
  stop_reason: 'end',
  timestamp: 1,
  usage: { input: 1, output: 2 },
};
const admit = (over: object): unknown => {
  const admission = admitMessage({ ...good, ...over }, defaults);
  return 'fault' in admission ? admission.fault : admission.message;
};
const call = (args: unknown): object => ({ type: 'function_call', id: 'c', function_id: 'a::b', arguments: args });
const argumentsOf = (args: unknown): JsonValue =>
  (admit({ content: [call(args)] }) as { content: { arguments: JsonValue }[] }).content[0]?.arguments ?? null;

describe('a message of a provider', () => {
  it('that is right is taken as it is', () => {
    const content = [
      { type: 'text', text: 'hi' },
      { type: 'thinking', text: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'image', data: 'AA==', mime: 'image/png' },
      call({ a: [1, null, 'x'] }),
    ];
    expect(admit({ content, warnings: ['w'], error_kind: 'transient', error_message: 'e', native_stop_reason: 'n' })).toEqual({
      ...good,
      content,
      warnings: ['w'],
      error_kind: 'transient',
      error_message: 'e',
      native_stop_reason: 'n',
    });
  });

  it('without its facts has those of the turn', () => {
    const admission = admitMessage(
      { content: [], timestamp: 'today', usage: 'much', stop_reason: 'done', warnings: [1], error_message: 5 },
      defaults,
    );
    expect(admission).toEqual({
      message: { role: 'assistant', content: [], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 7, usage: null },
    });
    expect(admit({ content: [call({})], stop_reason: null })).toMatchObject({ stop_reason: 'function_call' });
  });

  it.each([
    [null, 'it has no content'],
    ['text', 'it has no content'],
    [{ content: 'text' }, 'it has no content'],
    [{ content: [null] }, 'content[0] is not a block'],
    [
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 5 },
        ],
      },
      'content[1].text must be a string',
    ],
    [{ content: [{ type: 'function_call', id: 5, function_id: 'a', arguments: {} }] }, 'content[0].id must be a string'],
    [{ content: [{ type: 'function_call', id: 'a', arguments: {} }] }, 'content[0].function_id must be a string'],
    [{ content: [{ type: 5 }] }, 'content[0].type must be a string'],
  ])('that is %j is refused whole', (message, fault) => {
    expect(admitMessage(message, defaults)).toEqual({ fault });
  });

  it('keeps no forged results and no blocks of unknown types', () => {
    expect(
      admit({ content: [{ type: 'function_result', function_call_id: 'c', content: [] }, { type: 'video' }, { type: 'text', text: 'a' }] }),
    ).toMatchObject({ content: [{ type: 'text', text: 'a' }] });
  });

  it('counts only counts', () => {
    expect(admitUsage({ input: -1, output: Number.NaN, cache_read: '5', cost_usd: 0.5, other: 1 })).toEqual({ cost_usd: 0.5 });
  });

  it('that is under way gives what of it can be used', () => {
    expect(admitPartial({ content: [{ type: 'text', text: 'a' }, { type: 'text' }, null, { type: 'odd' }] })).toEqual([
      { type: 'text', text: 'a' },
    ]);
    for (const odd of [null, 5, {}, { content: {} }]) expect(admitPartial(odd)).toEqual([]);
  });
});

describe('arguments', () => {
  it('become plain JSON with well-formed texts', () => {
    const given = { a: '\ud800', '\udc00': 1, gone: undefined, when: new Date(0), no: Number.NaN, list: [undefined, () => 1].slice(0, 1) };
    expect(argumentsOf(given)).toEqual({ a: '\ufffd', '\ufffd': 1, when: '1970-01-01T00:00:00.000Z', no: null, list: [null] });
    expect(argumentsOf(undefined)).toBe(null);
    expect(argumentsOf(JSON.parse('{"__proto__": {"x": 1}}'))).toEqual(JSON.parse('{"__proto__": {"x": 1}}'));
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  it('that have no end or no place in JSON are marked as not parsed', () => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    let deep: unknown = 1;
    for (let level = 0; level < 20_000; level += 1) deep = [deep];
    for (const odd of [
      cyclic,
      deep,
      { n: 1n },
      { f: () => 1 },
      {
        toJSON: () => {
          throw new Error('no');
        },
      },
    ]) {
      expect(argumentsOf(odd)).toMatchObject({ _partial: true, _invalid: { error: expect.any(String) as string } });
    }
  });
});
