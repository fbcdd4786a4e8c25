import { describe, expect, it } from 'vitest';
import type { StreamFrame } from '#libs/contracts';
import { PartialMessage } from './partial.js';

describe('what a provider says of its message so far', () => {
  it.each([
    ['no object', 'text'],
    ['without content', {}],
    ['with content that is no list', { content: 'text' }],
    ['with blocks that are none', { content: [null, 3, { type: 'text' }, { type: 'thinking', text: 7 }, { text: 'no type' }] }],
  ])('is left out when it is %s', (_what, partial) => {
    const message = new PartialMessage();
    message.add({ type: 'text_start', partial } as unknown as StreamFrame);
    message.add({ type: 'text_delta', delta: 'hello' });
    expect(message.content()).toEqual([{ type: 'text', text: 'hello' }]);
  });
});
