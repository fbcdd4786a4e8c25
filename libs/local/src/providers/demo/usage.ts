import type { AgentFunction, ContentBlock, Usage } from '#libs/contracts';
import type { Prompt } from './reply.js';

const CHARS_PER_TOKEN = 4;
/** What a vendor takes an image for, roughly. */
const IMAGE_TOKENS = 1_000;

const toolSizes = new WeakMap<AgentFunction, number>();

/** The accounting of a reply, by the rule of four characters a token. It costs nothing. */
export function usageOf(prompt: Prompt, systemPrompt: string | null, content: readonly ContentBlock[]): Usage {
  let input = systemPrompt?.length ?? 0;
  for (const message of prompt.messages) input += lengthOf(message.content);
  for (const tool of prompt.tools) input += toolSize(tool);
  return { input: tokens(input), output: tokens(lengthOf(content)), cost_usd: 0 };
}

const tokens = (characters: number): number => Math.ceil(characters / CHARS_PER_TOKEN);

function toolSize(tool: AgentFunction): number {
  let size = toolSizes.get(tool);
  if (size === undefined) {
    size = JSON.stringify(tool).length;
    toolSizes.set(tool, size);
  }
  return size;
}

function lengthOf(content: readonly ContentBlock[]): number {
  let length = 0;
  for (const block of content) {
    switch (block.type) {
      case 'text':
      case 'thinking':
        length += block.text.length;
        break;
      case 'function_call':
        length += block.function_id.length + JSON.stringify(block.arguments).length;
        break;
      case 'function_result':
        length += lengthOf(block.content);
        break;
      case 'image':
        length += IMAGE_TOKENS * CHARS_PER_TOKEN;
        break;
      case 'redacted_thinking':
        length += block.data.length;
        break;
      default: {
        const never: never = block;
        void never; // a block type of a later version counts nothing
      }
    }
  }
  return length;
}
