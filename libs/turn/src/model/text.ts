import type { AgentMessage, ContentBlock, JsonValue } from '#libs/contracts';

/** Makes a text well-formed Unicode: a lone half of a surrogate pair becomes U+FFFD. */
export const wellFormed = (text: string): string => (text.isWellFormed() ? text : text.toWellFormed());

/** Makes every string in a JSON value well-formed. Returns the same value when nothing has to change. */
export function wellFormedJson(value: JsonValue): JsonValue {
  if (typeof value === 'string') return wellFormed(value);
  if (Array.isArray(value)) return value.map(wellFormedJson);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [wellFormed(key), wellFormedJson(item)]));
  }
  return value;
}

/** Makes the blocks of a message fit to store and send: well-formed text, no empty text blocks. */
export function cleanContent(content: readonly ContentBlock[]): ContentBlock[] {
  const cleaned: ContentBlock[] = [];
  for (const block of content) {
    switch (block.type) {
      case 'text':
        if (block.text.trim() !== '') cleaned.push({ ...block, text: wellFormed(block.text) });
        break;
      case 'thinking':
        // A signed block goes back byte for byte or not at all.
        cleaned.push(block.signature == null ? { ...block, text: wellFormed(block.text) } : block);
        break;
      case 'function_call':
        cleaned.push({ ...block, function_id: wellFormed(block.function_id), arguments: wellFormedJson(block.arguments) });
        break;
      case 'function_result':
        cleaned.push({ ...block, content: cleanContent(block.content) });
        break;
      case 'image':
      case 'redacted_thinking':
        cleaned.push(block);
        break;
      default: {
        const unknown: never = block;
        throw new Error(`unknown block ${JSON.stringify(unknown)}`);
      }
    }
  }
  return cleaned;
}

/** A text message of a user. */
export const userText = (text: string, now: number): AgentMessage => ({
  role: 'user',
  content: [{ type: 'text', text: wellFormed(text) }],
  timestamp: now,
});

/** The first `max` characters (UTF-16 units) of a text, cut at a code point. */
export function headOf(text: string, max: number): string {
  const head = text.slice(0, max);
  return max < text.length && isHalf(head.charCodeAt(head.length - 1), 0xd800) ? head.slice(0, -1) : head;
}

/** The last `max` characters (UTF-16 units) of a text, cut at a code point. */
export function tailOf(text: string, max: number): string {
  const tail = text.slice(Math.max(0, text.length - max));
  return max < text.length && isHalf(tail.charCodeAt(0), 0xdc00) ? tail.slice(1) : tail;
}

/** True for one half of a surrogate pair: the first half from 0xd800 on, the second from 0xdc00 on. */
const isHalf = (code: number, from: number): boolean => code >= from && code < from + 0x400;

/** Cuts a text to `max` characters at a code point, with a mark at its end. */
export const cut = (text: string, max: number): string => (text.length <= max ? text : `${headOf(text, Math.max(0, max - 1))}…`);
