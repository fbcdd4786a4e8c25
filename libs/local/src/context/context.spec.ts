import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AgentMessage, callsOf, textOf } from '#libs/contracts';
import { messageTokens, textTokens, toolTokens } from '#libs/turn';
import { cutPoints, tailStart } from './exchanges.js';
import { Measures } from './measured.js';
import { normalised, surplusImages, withoutOldImages } from './media.js';
import { type PruneRules, prune } from './prune.js';
import { cappedResult, reduceResults } from './results.js';
import { assistant, call, conversations, image, result, user } from './test/conversations.js';
import { trimmed } from './trim.js';

const tokens = (messages: readonly AgentMessage[]): number => messages.reduce((sum, message) => sum + messageTokens(message), 0);
const sumsOf = (messages: readonly AgentMessage[]): number[] =>
  messages.map((_one, index) => tokens(messages.slice(0, index))).concat(tokens(messages));

/** Every call of the part has its result there, and every result its call. */
function isWhole(messages: readonly AgentMessage[]): boolean {
  const calls = messages.flatMap((message) => (message.role === 'assistant' ? callsOf(message.content).map(({ id }) => id) : []));
  const results = messages.flatMap((message) => (message.role === 'function_result' ? [message.function_call_id] : []));
  return JSON.stringify(calls) === JSON.stringify(results);
}

describe('the estimate', () => {
  it('takes four characters for a token, a wide letter for one, an image for 4096', () => {
    expect([textTokens(''), textTokens('abc'), textTokens('a'.repeat(400)), textTokens('漢字'), textTokens('ab漢')]).toEqual([
      0, 1, 100, 2, 2,
    ]);
    expect(messageTokens({ ...user('a'.repeat(40)), content: [image(), { type: 'text', text: 'a'.repeat(40) }] })).toBe(4_106);
  });

  it('C06 counts what is sent: neither details nor unsigned thinking', () => {
    expect(messageTokens({ ...result('c', 'a'.repeat(40)), details: { large: 'x'.repeat(9_000) } } as AgentMessage)).toBe(10);
    expect(messageTokens(assistant({ type: 'thinking', text: 'x'.repeat(400) }))).toBe(0);
    expect(messageTokens(assistant({ type: 'thinking', text: 'x'.repeat(400), signature: 'abcd' }))).toBe(101);
    expect(toolTokens([{ name: 'f', description: 'd', parameters: { type: 'object' } }])).toBeGreaterThan(5);
  });
});

describe('cut points', () => {
  it('never part a call from its result', () => {
    fc.assert(
      fc.property(conversations, (messages) => {
        for (const point of cutPoints(messages)) {
          expect(isWhole(messages.slice(0, point))).toBe(true);
          expect(isWhole(messages.slice(point))).toBe(true);
        }
      }),
    );
  });

  it('wait for a late result, and not for one that never comes', () => {
    const late = [user('a'), assistant(call('1')), user('b'), result('1', 'r'), user('c')];
    expect(cutPoints(late)).toEqual([0, 1, 4]);
    expect(cutPoints([user('a'), assistant(call('1')), user('b'), user('c')])).toEqual([0, 1, 2, 3]);
  });

  it('are where a tail begins, at a user message where that fits', () => {
    fc.assert(
      fc.property(conversations, fc.nat(4), fc.nat(3_000), (messages, turns, preserve) => {
        const start = tailStart(messages, sumsOf(messages), { turns, preserve, room: 10_000 });
        if (turns === 0 && preserve === 0) expect(start).toBe(messages.length);
        else {
          expect(cutPoints(messages)).toContain(start);
          const users = messages.flatMap((message, index) => (message.role === 'user' ? [index] : []));
          if (users.some((index) => tokens(messages.slice(index)) <= preserve)) expect(messages[start]?.role).toBe('user');
        }
      }),
    );
  });
});

describe('results', () => {
  it('C32 are cut to a limit with a mark, keep their ends, and others stay the same object', () => {
    const long = result('c', `start ${'x'.repeat(100_000)} end`);
    const cut = cappedResult(long, 1_000);
    expect(messageTokens(cut)).toBeLessThanOrEqual(1_000);
    expect(cappedResult(cut, 1_000)).toBe(cut);
    expect(textOf(cut.content)).toMatch(/^start x[\s\S]*<omitted: [\s\S]*25003 tokens[\s\S]* end$/);
    expect(cappedResult(long, 30_000)).toBe(long);
    expect(cappedResult(user('x'.repeat(9_000)), 10)).toEqual(user('x'.repeat(9_000)));
  });

  it('keep their newest images', () => {
    const many = { ...result('c', 'text'), content: [image(1), image(2), image(3), { type: 'text', text: 'text' }] } as AgentMessage;
    const cut = cappedResult(many, 9_000).content;
    expect(cut.map((block) => block.type)).toEqual(['text', 'image', 'image', 'text']);
    expect(textOf(cut.slice(0, 1))).toContain('was left out');
  });

  it('are all that is shortened when a conversation has to fit', () => {
    fc.assert(
      fc.property(conversations, fc.nat(8_000), (messages, room) => {
        const reduced = reduceResults(messages, room);
        if (reduced === null) return;
        expect(tokens(reduced)).toBeLessThanOrEqual(room);
        for (const [index, message] of messages.entries()) if (message.role !== 'function_result') expect(reduced[index]).toBe(message);
      }),
    );
  });
});

describe('pruning', () => {
  const rules: PruneRules = { protect_recent_tokens: 100, min_free_tokens: 50, max_output_chars: 200, protected_functions: [], step: 1 };
  const long = (id: string, function_id?: string): AgentMessage => result(id, 'x'.repeat(1_000), function_id);

  it('replaces old, long results by placeholders and nothing else', () => {
    const messages = [
      user('a'),
      assistant(call('1'), call('2')),
      long('1'),
      result('2', 'short'),
      assistant(call('3')),
      long('3'),
      user('b'),
    ];
    const pruned = prune(messages, rules);
    expect(pruned).toMatchObject({ pruned_parts: 1, scanned_parts: 3 });
    expect(pruned.messages.map((message, index) => message === messages[index])).toEqual([true, true, false, true, true, true, true]);
    expect(textOf(pruned.messages[2]?.content ?? [])).toContain('1000 characters');
    expect(pruned.pruned_tokens).toBe(tokens(messages) - tokens(pruned.messages));
  });

  it('leaves everything when too little becomes free, or the function is protected', () => {
    const messages = [long('1', 'keep::me'), long('2', 'keep::me'), long('3')];
    expect(prune(messages, { ...rules, min_free_tokens: 10_000 })).toMatchObject({ pruned_parts: 0, messages });
    expect(prune(messages, { ...rules, protected_functions: ['keep::me'] })).toMatchObject({ pruned_parts: 0, messages, scanned_parts: 1 });
  });

  it('C33 in steps changes the beginning rarely while the conversation grows', () => {
    let before: AgentMessage[] = [];
    let changes = 0;
    for (let count = 1; count <= 100; count += 1) {
      const messages = Array.from({ length: count }, (_, n) => grown(n));
      const pruned = prune(messages, { ...rules, step: 2_500, min_free_tokens: 2_500 }).messages;
      if (before.some((message, index) => message !== pruned[index])) changes += 1;
      before = pruned;
    }
    expect(changes).toBeGreaterThan(3);
    expect(changes).toBeLessThan(12);
  });

  const known: AgentMessage[] = [];
  const grown = (n: number): AgentMessage => (known[n] ??= long(String(n)));
});

describe('images', () => {
  it('C18 that no model takes become notes', () => {
    const content = normalised([image(), { type: 'image', mime: 'image/bmp', data: 'AAAA' }, image(6 * 1_048_576), image(0)]);
    expect(content.map((block) => block.type)).toEqual(['image', 'text', 'text', 'text']);
    const fine = [image()];
    expect(normalised(fine)).toBe(fine);
  });

  it('that are too many go oldest first, in big steps', () => {
    const gone = Array.from({ length: 60 }, (_, count) =>
      surplusImages(
        Array.from({ length: count }, () => 10),
        100,
      ),
    );
    expect(gone.slice(0, 21).every((count) => count === 0)).toBe(true);
    expect([...new Set(gone)]).toEqual([0, 10, 20, 30, 40]);
    for (const [count, surplus] of gone.entries()) expect(count - surplus).toBeLessThanOrEqual(20);
  });

  it('that are too large together go oldest first, and the newest stays', () => {
    const megabyte = 1_048_576;
    expect(
      surplusImages(
        Array.from({ length: 5 }, () => 4 * megabyte),
        100,
      ),
    ).toBe(2);
    expect(surplusImages([4 * megabyte], 0)).toBe(0);
    const messages = [
      { ...user('a'), content: [image(1), image(2)] },
      { ...user('b'), content: [image(3)] },
    ] as AgentMessage[];
    const left = withoutOldImages(messages, 1);
    expect(left[0]?.content.map((block) => block.type)).toEqual(['text', 'image']);
    expect(left[1]).toBe(messages[1]);
  });
});

describe('a conversation without its oldest part', () => {
  it('fits where that can be, is whole, ends with the same exchange, and begins with a user message', () => {
    fc.assert(
      fc.property(conversations, fc.nat(6_000), (messages, room) => {
        const kept = trimmed(messages, room, 500);
        expect(isWhole(kept)).toBe(true);
        expect(kept.at(-1)).toBe(messages.at(-1));
        expect(kept[0]?.role).toBe('user');
        if (tokens(messages.slice(cutPoints(messages).at(-1) ?? 0)) + 30 <= room) expect(tokens(kept)).toBeLessThanOrEqual(room);
      }),
    );
  });

  it('keeps what the person has said last when it begins among calls', () => {
    const messages = [
      user('old'),
      assistant({ type: 'text', text: 'x'.repeat(4_000) }),
      user('the task'),
      assistant(call('1')),
      result('1', 'x'.repeat(4_000)),
      assistant(call('2')),
      result('2', 'y'),
    ];
    const kept = trimmed(messages, 500, 100);
    expect(kept.map((message) => message.role)).toEqual(['user', 'user', 'assistant', 'function_result']);
    expect(kept[1]).toBe(messages[2]);
  });
});

describe('measures', () => {
  it('of a conversation that goes on are those of the whole', () => {
    fc.assert(
      fc.property(conversations, fc.nat(60), (messages, middle) => {
        const measures = new Measures();
        measures.of('s', messages.slice(0, middle), 500);
        const known = measures.of('s', messages, 500);
        const fresh = new Measures().of(null, messages, 500);
        expect([known.messages, known.sums, known.byRole, known.given]).toEqual([fresh.messages, fresh.sums, fresh.byRole, fresh.given]);
      }),
    );
  });

  it('of one that changed are made anew', () => {
    const measures = new Measures();
    const messages = [user('a'), user('b')];
    const first = measures.of('s', messages, 500);
    expect(measures.of('s', [...messages], 500)).toBe(first);
    expect(measures.of('s', [user('a'), ...messages.slice(1)], 500)).not.toBe(first);
    expect(measures.of('s', messages.slice(0, 1), 500).messages).toHaveLength(1);
  });
});
