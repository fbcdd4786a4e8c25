import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AgentMessage, type ContentBlock, callsOf, type Entry } from '#libs/contracts';
import { userAfter, wireMessages } from './wire-order.js';

let made = 0;
const nextId = (): string => {
  made += 1;
  return `e_${made}`;
};
const entryOf = (message: AgentMessage, id = nextId()): Entry => ({ kind: 'message', id, revision: 0, timestamp: 0, message });
const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 0 });
const assistant = (...content: (string | ContentBlock)[]): AgentMessage => ({
  role: 'assistant',
  model: 'm',
  provider: 'p',
  stop_reason: 'end',
  timestamp: 0,
  content: content.map((block) => (typeof block === 'string' ? { type: 'text', text: block } : block)),
});
const call = (id: string): ContentBlock => ({ type: 'function_call', id, function_id: 'f::x', arguments: {} });
const result = (id: string, text = `result of ${id}`): AgentMessage => ({
  role: 'function_result',
  function_call_id: id,
  function_id: 'f::x',
  content: [{ type: 'text', text }],
  details: null,
  is_error: false,
  timestamp: 0,
});
const custom = (): Entry => ({ kind: 'custom', id: nextId(), revision: 0, timestamp: 0, custom_type: 'notice', data: null });

/** A message in short: `u:text`, `a:text[ids]`, `r:id=text`, with `!` for a result that was made up. */
function short(message: AgentMessage): string {
  const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  switch (message.role) {
    case 'user':
      return `u:${text}`;
    case 'assistant':
      return `a:${text}[${callsOf(message.content)
        .map(({ id }) => id)
        .join()}]`;
    case 'function_result':
      return `r:${message.function_call_id}${message.is_error ? '!' : `=${text}`}`;
    case 'custom':
      return 'custom';
  }
}
const build = (...window: (AgentMessage | Entry)[]): string[] =>
  wireMessages(window.map((item) => ('kind' in item ? item : entryOf(item)))).messages.map(short);

describe('wireMessages', () => {
  it('puts results right after their calls, in call order, and what came between after them', () => {
    expect(build(user('1'), assistant('x', call('a'), call('b')), result('b'), user('2'), result('a'), user('3'))).toEqual([
      'u:1',
      'a:x[a,b]',
      'r:a=result of a',
      'r:b=result of b',
      'u:2',
      'u:3',
    ]);
  });
  it('C15 gives an orphan call a result that says so, wherever it stands', () => {
    expect(build(user('1'), assistant(call('a'), call('b')), result('a'), user('2'), assistant(call('c')))).toEqual([
      'u:1',
      'a:[a,b]',
      'r:a=result of a',
      'r:b!',
      'u:2',
      'a:[c]',
      'r:c!',
    ]);
    const { messages } = wireMessages([entryOf(assistant(call('a')))]);
    expect(messages[1]).toMatchObject({ is_error: true, function_id: 'f::x', details: { error: 'result_missing' } });
  });
  it('leaves out results without a call, second results, and what no model may see', () => {
    const note: AgentMessage = { role: 'custom', custom_type: 'x', content: [{ type: 'text', text: 'secret' }], timestamp: 0 };
    expect(build(user('1'), result('z'), custom(), note, assistant(call('a')), result('a', 'first'), result('a', 'second'))).toEqual([
      'u:1',
      'a:[a]',
      'r:a=first',
    ]);
  });
  it('C17 leaves out assistant messages without substance', () => {
    expect(
      build(
        user('1'),
        assistant(),
        assistant(''),
        assistant(' \n'),
        user('2'),
        assistant({ type: 'thinking', text: 'so', signature: 's' }),
      ),
    ).toEqual(['u:1', 'u:2', 'a:[]']);
  });
  it('gives a call id that was used before the result that follows its own call', () => {
    expect(build(assistant(call('a')), result('a', '1'), user('x'), assistant(call('a')), result('a', '2'))).toEqual([
      'a:[a]',
      'r:a=1',
      'u:x',
      'a:[a]',
      'r:a=2',
    ]);
    expect(build(assistant(call('a')), user('x'), assistant(call('a')), result('a', '2'))).toEqual([
      'a:[a]',
      'r:a!',
      'u:x',
      'a:[a]',
      'r:a=2',
    ]);
    expect(build(result('a', '0'), assistant(call('a')), user('x'))).toEqual(['a:[a]', 'r:a!', 'u:x']);
  });
  it('leaves out the entry that is being generated again', () => {
    const window = [entryOf(user('1')), entryOf(assistant('half', call('a')), 'again'), entryOf(user('2'))];
    expect(wireMessages(window, 'again').messages.map(short)).toEqual(['u:1', 'u:2']);
    expect([...wireMessages(window, 'again').callIds]).toEqual([]);
  });
  it('tells the call ids of the conversation', () => {
    expect([...wireMessages([entryOf(assistant(call('a'), call('b'))), entryOf(result('a'))]).callIds].sort()).toEqual(['a', 'b']);
  });

  it('builds the same from a window that grows as from scratch, at any pace', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd');
    const message = fc.oneof(
      fc.constantFrom('1', '2').map(user),
      fc.uniqueArray(id, { maxLength: 3 }).map((ids) => assistant('t', ...ids.map(call))),
      fc.constant(assistant('')),
      id.map((callId) => result(callId)),
    );
    const grown = fc.array(fc.tuple(fc.oneof(message, fc.constant(null)), fc.boolean(), fc.boolean()), { maxLength: 40 });
    fc.assert(
      fc.property(grown, (steps) => {
        const window: Entry[] = [];
        for (const [index, [next, looks, replaces]] of steps.entries()) {
          const last = window.at(-1);
          // An assistant entry at the end may still be written over, as a stream does.
          if (replaces && last?.kind === 'message' && last.message.role === 'assistant')
            window[window.length - 1] = { ...last, message: assistant(`again ${index}`, call('d')) };
          window.push(next === null ? custom() : entryOf(next));
          if (!looks) continue;
          expect(wireMessages(window).messages).toEqual(wireMessages(window.slice()).messages);
          expect([...wireMessages(window).callIds].sort()).toEqual([...wireMessages(window.slice()).callIds].sort());
          const newest = window.at(-1);
          const skip = newest?.kind === 'message' && newest.message.role === 'assistant' ? newest.id : 'none';
          expect(wireMessages(window, skip).messages).toEqual(wireMessages(window.slice(), skip).messages);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('always gives a model one result for each call right after it, in call order', () => {
    const id = fc.constantFrom('a', 'b', 'c');
    const message = fc.oneof(
      fc.constant(user('u')),
      fc.uniqueArray(id, { maxLength: 3 }).map((ids) => assistant('t', ...ids.map(call))),
      id.map((callId) => result(callId)),
    );
    fc.assert(
      fc.property(fc.array(message, { maxLength: 25 }), (all) => {
        const built = wireMessages(all.map((one) => entryOf(one))).messages;
        const expected: string[] = [];
        for (const one of built) {
          if (one.role === 'function_result') expect(expected.shift()).toBe(one.function_call_id);
          else {
            expect(expected).toEqual([]);
            if (one.role === 'assistant') expected.push(...callsOf(one.content).map((block) => block.id));
          }
        }
        expect(expected).toEqual([]);
      }),
    );
  });

  it('costs what is new, not the whole conversation', () => {
    const window: Entry[] = [];
    const turn = (): void =>
      void window.push(
        entryOf(user('u')),
        entryOf(assistant(call(`x${made}`))),
        entryOf(result(`x${made - 1}`)),
        entryOf(assistant('done')),
      );
    for (let n = 0; n < 20_000; n += 1) turn();
    wireMessages(window);
    let asked = 0;
    const counted = new Proxy(window, {
      get: (target, key) => {
        if (typeof key === 'string' && /^\d+$/.test(key)) asked += 1;
        return Reflect.get(target, key) as unknown;
      },
    });
    wireMessages(counted);
    const whole = asked;
    asked = 0;
    turn();
    wireMessages(counted);
    expect(asked).toBeLessThan(whole / 1_000);
  });
});

describe('userAfter', () => {
  const window = [
    entryOf(user('1'), 'one'),
    entryOf(assistant('x'), 'two'),
    custom(),
    entryOf(user('2'), 'three'),
    entryOf(result('a'), 'four'),
  ];
  it.each<[string | null, boolean]>([
    ['one', true],
    ['two', true],
    ['three', false],
    ['four', false],
    [null, true],
    ['gone', true],
  ])('after %s: %s', (watermark, expected) => {
    expect(userAfter(window, watermark)).toBe(expected);
  });
  it('is false in an empty window', () => {
    expect(userAfter([], null)).toBe(false);
  });
});
