import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AssistantMessage, ContentBlock, StreamFrame } from '#libs/contracts';
import { MessageAccumulator } from './accumulator.js';

const messageOf = (content: ContentBlock[]): AssistantMessage => ({
  role: 'assistant',
  content,
  model: 'm',
  provider: 'p',
  stop_reason: 'aborted',
  timestamp: 5,
  usage: null,
});

type Block = Extract<ContentBlock, { type: 'text' | 'thinking' | 'function_call' }>;

/** The frames of a message, its texts in pieces; `fat` ones carry the message so far. */
function framesOf(content: readonly Block[], fat: 'every' | 'ends' | 'none'): StreamFrame[] {
  const frames: StreamFrame[] = [{ type: 'start', partial: messageOf([]) }];
  const partial = (blocks: ContentBlock[]) => (fat === 'every' ? { partial: messageOf(blocks) } : {});
  for (const [index, block] of content.entries()) {
    const before = content.slice(0, index);
    const whole = fat === 'none' ? {} : { partial: messageOf([...before, block]) };
    if (block.type === 'function_call') {
      frames.push(
        { type: 'functioncall_start', id: block.id, ...partial([...before]) },
        { type: 'functioncall_delta', delta: '{}', ...partial([...before]) },
        { type: 'functioncall_end', ...whole },
      );
      continue;
    }
    frames.push({ type: `${block.type}_start`, ...partial([...before]) });
    for (let end = 1; end <= block.text.length; end += 1) {
      frames.push({
        type: `${block.type}_delta`,
        delta: block.text.slice(end - 1, end),
        ...partial([...before, { ...block, text: block.text.slice(0, end) }]),
      });
    }
    frames.push({ type: `${block.type}_end`, ...whole });
  }
  return frames;
}

function accumulate(frames: readonly StreamFrame[]): MessageAccumulator {
  const accumulator = new MessageAccumulator('asked', 'somebody');
  for (const frame of frames) accumulator.take(frame);
  return accumulator;
}

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.string({ minLength: 1, maxLength: 6 }).map((text) => ({ type: 'text' as const, text })),
  fc.string({ minLength: 1, maxLength: 6 }).map((text) => ({ type: 'thinking' as const, text })),
  fc.constantFrom('a', 'b').map((id) => ({ type: 'function_call' as const, id, function_id: 'f::x', arguments: {} })),
);

describe('MessageAccumulator', () => {
  it('makes the same of whole partials, of partials at block ends, and of deltas alone', () => {
    fc.assert(
      fc.property(fc.array(block, { maxLength: 5 }), fc.nat(), (content, cut) => {
        const shown = (['every', 'ends', 'none'] as const).map((fat) => {
          const frames = framesOf(content, fat);
          return accumulate(frames.slice(0, 1 + (cut % frames.length))).partial(9);
        });
        expect(shown[1]).toEqual(shown[0]);
        expect(shown[2]).toEqual(shown[0]);
      }),
    );
  });

  it('keeps every letter of the texts, in order, and leaves calls out', () => {
    fc.assert(
      fc.property(fc.array(block, { maxLength: 5 }), (content) => {
        const expected = content.filter(({ type }) => type !== 'function_call');
        expect(accumulate(framesOf(content, 'none')).partial(9)?.content ?? []).toEqual(expected);
      }),
    );
  });

  it('tells a watcher what each frame adds', () => {
    const accumulator = new MessageAccumulator('m', 'p');
    const told = framesOf(
      [
        { type: 'thinking', text: 'so' },
        { type: 'text', text: 'hi' },
      ],
      'every',
    ).map((frame) => accumulator.take(frame));
    expect(told.filter((added) => added !== null)).toEqual([
      { kind: 'thinking', delta: 's' },
      { kind: 'thinking', delta: 'o' },
      { kind: 'text', delta: 'h' },
      { kind: 'text', delta: 'i' },
    ]);
  });

  it('takes deltas of blocks that nobody opened, and blocks that nobody closed', () => {
    const { content } =
      accumulate([
        { type: 'text_delta', delta: 'a' },
        { type: 'thinking_delta', delta: 'b' },
        { type: 'text_start' },
        { type: 'text_delta', delta: 'c' },
      ]).partial(1) ?? {};
    expect(content).toEqual([
      { type: 'text', text: 'a' },
      { type: 'thinking', text: 'b' },
      { type: 'text', text: 'c' },
    ]);
  });

  it('keeps the signature that a block end brings', () => {
    const signed: ContentBlock = { type: 'thinking', text: 'so', signature: 'sig' };
    expect(
      accumulate([
        { type: 'thinking_start' },
        { type: 'thinking_delta', delta: 'so' },
        { type: 'thinking_end', partial: messageOf([signed]) },
      ]).partial(1)?.content,
    ).toEqual([signed]);
  });

  it('has nothing before the first piece, and model and provider from the stream when it names them', () => {
    expect(accumulate([{ type: 'start' }, { type: 'ping' }, { type: 'text_start' }]).partial(1)).toBeNull();
    expect(accumulate([{ type: 'text_delta', delta: 'x' }]).partial(7)).toMatchObject({
      model: 'asked',
      provider: 'somebody',
      timestamp: 7,
    });
    expect(
      accumulate([
        { type: 'start', partial: messageOf([]) },
        { type: 'text_delta', delta: 'x' },
      ]).partial(7),
    ).toMatchObject({ model: 'm', provider: 'p', timestamp: 5 });
  });

  it('keeps the usage of a stream that was cut off', () => {
    expect(accumulate([{ type: 'usage', usage: { input: 3 } }]).partial(1)).toMatchObject({ content: [], usage: { input: 3 } });
  });

  it('tells a good end from an error, with the wait that was asked for', () => {
    expect(accumulate([{ type: 'text_delta', delta: 'x' }]).terminal).toBeNull();
    expect(accumulate([{ type: 'stop', stop_reason: 'end' }]).terminal).toBeNull();
    expect(accumulate([{ type: 'done', message: messageOf([]) }]).terminal).toMatchObject({ failed: false });
    expect(accumulate([{ type: 'error', error: messageOf([]) }]).terminal).toMatchObject({ failed: true });
  });

  it('costs the same for each frame, however long the message is', () => {
    const timed = (count: number): number => {
      const startedAt = performance.now();
      const accumulator = new MessageAccumulator('m', 'p');
      for (let n = 0; n < count; n += 1) {
        accumulator.take({ type: 'text_delta', delta: 'token ' });
        if (n % 1_000 === 0) accumulator.partial(0);
      }
      expect(accumulator.partial(0)?.content).toHaveLength(1);
      return performance.now() - startedAt;
    };
    timed(20_000);
    const [short, long] = [Math.max(timed(20_000), 1), timed(400_000)];
    expect(long / short).toBeLessThan(200);
    expect(long).toBeLessThan(2_000);
  });
});
