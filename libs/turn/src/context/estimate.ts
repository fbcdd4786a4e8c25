import type { AgentFunction, AgentMessage, ContentBlock, Role } from '#libs/contracts';

const CHARACTERS_PER_TOKEN = 4;
/** Tokens that an image takes, whatever its size. */
export const IMAGE_TOKENS = 4_096;
/** Letters from here on (Chinese, Japanese, Korean, emoji) take about a token each. */
const FIRST_WIDE = 0x2e80;
const WIDE = /[\u2e80-\uffff]/;

/** Tokens that a text takes, roughly: four characters are one, a wide letter is one. */
export function textTokens(text: string): number {
  if (!WIDE.test(text)) return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
  let wide = 0;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) >= FIRST_WIDE) wide += 1;
  return wide + Math.ceil((text.length - wide) / CHARACTERS_PER_TOKEN);
}

const known = new WeakMap<object, number>();
const once = <T extends object>(item: T, count: (item: T) => number): number => {
  const before = known.get(item);
  if (before !== undefined) return before;
  const tokens = count(item);
  known.set(item, tokens);
  return tokens;
};

/** Tokens of one message as it is sent: its content, not its `details`. */
export const messageTokens = (message: AgentMessage): number => once(message, (one) => contentTokens(one.content));

/** Tokens of the schemas of what a model may call. */
export const toolTokens = (tools: readonly AgentFunction[]): number =>
  tools.reduce((sum, tool) => sum + once(tool, ({ name, description, parameters }) => jsonTokens([name, description, parameters])), 0);

/** Tokens of a value as JSON text. */
export const jsonTokens = (value: unknown): number => textTokens(JSON.stringify(value) ?? '');

/** Tokens of messages by their role. */
export type TokensByRole = { [role in Role]: number };

export function tokensByRole(messages: readonly AgentMessage[]): TokensByRole {
  const sums: TokensByRole = { user: 0, assistant: 0, function_result: 0, custom: 0 };
  for (const message of messages) sums[message.role] += messageTokens(message);
  return sums;
}

function contentTokens(content: readonly ContentBlock[]): number {
  return content.reduce((sum, block) => sum + blockTokens(block), 0);
}

function blockTokens(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
      return textTokens(block.text);
    case 'image':
      return IMAGE_TOKENS;
    case 'thinking':
      return block.signature == null ? 0 : textTokens(block.text) + textTokens(block.signature); // unsigned thinking is never sent
    case 'redacted_thinking':
      return textTokens(block.data);
    case 'function_call':
      return textTokens(block.id) + textTokens(block.function_id) + jsonTokens(block.arguments);
    case 'function_result':
      return contentTokens(block.content);
    default: {
      const unknown: never = block;
      void unknown; // a reference to a file, of a later version: nothing of it is sent
      return 0;
    }
  }
}
