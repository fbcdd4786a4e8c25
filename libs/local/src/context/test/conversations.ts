import fc from 'fast-check';
import type { AgentMessage, ContentBlock } from '#libs/contracts';

const words = (characters: number): string => 'word '.repeat(Math.ceil(characters / 5));
export const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });
export const assistant = (...content: ContentBlock[]): AgentMessage => ({
  role: 'assistant',
  content,
  model: 'm',
  provider: 'p',
  stop_reason: 'end',
  timestamp: 1,
});
export const call = (id: string): ContentBlock => ({ type: 'function_call', id, function_id: 'probe::look', arguments: { id } });
export const result = (id: string, text: string, function_id = 'probe::look'): AgentMessage => ({
  role: 'function_result',
  function_call_id: id,
  function_id,
  content: [{ type: 'text', text }],
  details: null,
  is_error: false,
  timestamp: 1,
});
export const image = (characters = 100): ContentBlock => ({ type: 'image', mime: 'image/png', data: 'A'.repeat(characters) });

const size = fc.oneof(fc.nat(200), fc.nat(4_000));
const exchange = fc.oneof(
  fc.record({ kind: fc.constant('say' as const), ask: size, answer: size }),
  fc.record({
    kind: fc.constant('work' as const),
    ask: size,
    results: fc.array(fc.array(fc.nat(12_000), { minLength: 1, maxLength: 3 }), { maxLength: 5 }),
  }),
);

/** A conversation in the order that models take: each call is followed by its result. It ends with what is to be answered. */
export const conversations = fc.tuple(fc.array(exchange, { maxLength: 14 }), size).map(([exchanges, last]): AgentMessage[] => {
  const messages: AgentMessage[] = [];
  let calls = 0;
  for (const one of exchanges) {
    messages.push(user(`ask ${words(one.ask)}`));
    if (one.kind === 'say') {
      messages.push(assistant({ type: 'text', text: `answer ${words(one.answer)}` }));
      continue;
    }
    for (const sizes of one.results) {
      const ids = sizes.map(() => `c${calls++}`);
      messages.push(assistant(...ids.map(call)), ...ids.map((id, at) => result(id, words(sizes[at] ?? 0))));
    }
    messages.push(assistant({ type: 'text', text: 'done' }));
  }
  return [...messages, user(`last ${words(last)}`)];
});
