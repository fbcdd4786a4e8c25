import type { AgentMessage, FunctionResultMessage } from '#libs/contracts';
import { headOf, IMAGE_TOKENS, messageTokens, tailOf, textTokens } from '#libs/turn';
import { withoutImages } from './media.js';

/** Least tokens that a result is cut to. */
export const SMALLEST_RESULT = 100;

/**
 * A result within `limit` tokens: its oldest images become notes, and of its text the start and the end stay, with a mark in
 * between. Others come back as they are.
 */
export function cappedResult<M extends AgentMessage>(message: M, limit: number): M | FunctionResultMessage {
  if (message.role !== 'function_result' || messageTokens(message) <= limit) return message;
  const images = message.content.filter((block) => block.type === 'image').length;
  const said = messageTokens(message) - images * IMAGE_TOKENS;
  const kept = Math.min(images, Math.max(0, Math.floor((limit - Math.min(said, limit / 2)) / IMAGE_TOKENS)));
  const content = withoutImages(message.content, images - kept, 'there is no room for it');
  const fewer: FunctionResultMessage = { ...message, content };
  if (messageTokens(fewer) <= limit) return fewer;
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
  const room = Math.max(SMALLEST_RESULT, limit - kept * IMAGE_TOKENS);
  return {
    ...message,
    content: [{ type: 'text', text: shortened(text, room, messageTokens(message)) }, ...content.filter((block) => block.type === 'image')],
  };
}

function shortened(text: string, limit: number, size: number): string {
  const mark = `<omitted: the middle of this result, which takes about ${size} tokens; there is room for ${limit}>`;
  // Four characters are a token, but a wide letter is one, so the room shrinks until the text fits.
  for (let room = Math.max(0, (limit - textTokens(mark) - 1) * 2); ; room = Math.floor(room / 2)) {
    const cut = `${headOf(text, room)}\n${mark}\n${tailOf(text, room)}`;
    if (room < 8 || textTokens(cut) <= limit) return cut;
  }
}

/**
 * Messages within `room` tokens, by cutting their longest results to the same length; null when that is not enough. Nothing
 * but results is touched.
 */
export function reduceResults(messages: readonly AgentMessage[], room: number): AgentMessage[] | null {
  const total = (list: readonly AgentMessage[]): number => list.reduce((sum, message) => sum + messageTokens(message), 0);
  if (total(messages) <= room) return [...messages];
  let limit = Math.max(...messages.map((message) => (message.role === 'function_result' ? messageTokens(message) : 0)));
  while (limit > SMALLEST_RESULT) {
    limit = Math.max(SMALLEST_RESULT, Math.floor(limit * 0.7));
    const reduced = messages.map((message) => cappedResult(message, limit));
    if (total(reduced) <= room) return reduced;
  }
  return null;
}
