import type { AgentMessage, ContentBlock } from '#libs/contracts';
import { messageTokens, type TokensByRole } from '#libs/turn';
import { imageSizes, normalised } from './media.js';
import { cappedResult } from './results.js';

/** Conversations of which it is remembered what was measured. */
const MAX_KEPT = 64;

/** The messages of a conversation as they may be sent, with their sizes in tokens. */
export class Measured {
  readonly messages: AgentMessage[] = [];
  /** `sums[n]` is what the first n messages take. */
  readonly sums: number[] = [0];
  readonly byRole: TokensByRole = { user: 0, assistant: 0, function_result: 0, custom: 0 };
  /** Sizes of all images, in order. */
  readonly images: number[] = [];
  /** What the messages take as they were given. */
  given = 0;
  capped_parts = 0;
  private readonly source: AgentMessage[] = [];

  constructor(private readonly limit: number) {}

  get tokens(): number {
    return this.sums.at(-1) ?? 0;
  }

  /** Adds messages behind those that are there; false when the conversation does not begin with those. */
  extend(messages: readonly AgentMessage[], limit: number): boolean {
    if (limit !== this.limit || messages.length < this.source.length) return false;
    for (let index = 0; index < this.source.length; index += 1) if (this.source[index] !== messages[index]) return false;
    for (let index = this.source.length; index < messages.length; index += 1) this.add(messages[index] as AgentMessage);
    return true;
  }

  private add(message: AgentMessage): void {
    this.source.push(message);
    const clean = cleaned(message);
    const capped = this.limit === 0 ? clean : cappedResult(clean, this.limit);
    const tokens = messageTokens(capped);
    this.given += messageTokens(message);
    if (capped !== clean) this.capped_parts += 1;
    this.messages.push(capped);
    this.sums.push(this.tokens + tokens);
    this.byRole[capped.role] += tokens;
    this.images.push(...imageSizes(capped));
  }
}

/** A message with what can be sent of it; one of which nothing can says so. */
function cleaned(message: AgentMessage): AgentMessage {
  const content = normalised(message.content);
  // What an assistant has said stays as it is: its thinking may be bound to it.
  const said = message.role === 'assistant' || !content.some(isBlank) ? content : content.filter((block) => !isBlank(block));
  if (said === message.content && said.length > 0) return message;
  return { ...message, content: said.length > 0 ? said : [{ type: 'text', text: '(no content)' }] };
}

const isBlank = (block: ContentBlock): boolean => block.type === 'text' && block.text.trim() === '';

/** Measures conversations; one that goes on costs what is new in it. */
export class Measures {
  private readonly kept = new Map<string, Measured>();

  /** `limit` is the longest result in tokens, 0 = none. The messages are taken by identity: who changes one makes another. */
  of(key: string | null, messages: readonly AgentMessage[], limit: number): Measured {
    const known = key === null ? undefined : this.kept.get(key);
    if (known?.extend(messages, limit) === true) return known;
    const measured = new Measured(limit);
    measured.extend(messages, limit);
    if (key === null) return measured;
    this.kept.delete(key);
    this.kept.set(key, measured);
    if (this.kept.size > MAX_KEPT) this.kept.delete(this.kept.keys().next().value ?? '');
    return measured;
  }
}
