import type { AssistantMessage, ContentBlock, StreamFrame, Usage } from '#libs/contracts';

interface OpenBlock {
  type: 'text' | 'thinking';
  parts: string[];
  /** Goes on with the last block of `base`. */
  continues: boolean;
}

/** The usable blocks of a provider's partial: it is a value from outside, and may be anything. */
function blocksOf(partial: AssistantMessage | undefined): ContentBlock[] {
  const content: unknown = partial?.content;
  if (!Array.isArray(content)) return [];
  return content.filter((block: unknown): block is ContentBlock => {
    if (typeof block !== 'object' || block === null) return false;
    const { type, text } = block as { type?: unknown; text?: unknown };
    return type === 'text' || type === 'thinking' ? typeof text === 'string' : typeof type === 'string';
  });
}

/**
 * What has arrived of a message, kept so that the router can end a stream that broke off. Each delta costs the same, whatever
 * the length of the message; the message is put together only when it is asked for.
 */
export class PartialMessage {
  /** The last cumulative message of the provider; what came after it is in `blocks`. */
  private base: AssistantMessage | undefined;
  private blocks: OpenBlock[] = [];
  private usage: Usage | undefined;

  add(frame: StreamFrame): void {
    switch (frame.type) {
      case 'text_delta':
      case 'thinking_delta':
        this.append(frame.type === 'text_delta' ? 'text' : 'thinking', frame.delta);
        break;
      case 'text_start':
      case 'thinking_start':
        this.blocks.push({ type: frame.type === 'text_start' ? 'text' : 'thinking', parts: [], continues: false });
        break;
      case 'usage':
        this.usage = frame.usage;
        break;
      case 'start':
      case 'text_end':
      case 'thinking_end':
      case 'functioncall_start':
      case 'functioncall_delta':
      case 'functioncall_end':
      case 'ping':
      case 'stop':
      case 'done':
      case 'error':
        break;
      default: {
        const never: never = frame;
        void never; // a frame type of a later version: nothing to keep
      }
    }
    if ('partial' in frame && frame.partial != null) {
      this.base = frame.partial;
      this.blocks = [];
    }
  }

  /** The text and thinking so far. Calls are left out: a call of a message that broke off never runs. */
  content(): ContentBlock[] {
    const kept = blocksOf(this.base).filter((block) => block.type !== 'function_call');
    for (const { type, parts, continues } of this.blocks) {
      const text = parts.join('');
      const last = kept[kept.length - 1];
      if (continues && last?.type === type) kept[kept.length - 1] = { ...last, text: last.text + text };
      else kept.push({ type, text });
    }
    return kept.filter((block) => !((block.type === 'text' || block.type === 'thinking') && block.text.trim() === ''));
  }

  /** The accounting so far, which is "at least" when the stream broke off. */
  usageSoFar(): Usage | undefined {
    return this.usage ?? this.base?.usage ?? undefined;
  }

  private append(type: 'text' | 'thinking', delta: string): void {
    const open = this.blocks[this.blocks.length - 1];
    if (open?.type === type) open.parts.push(delta);
    else this.blocks.push({ type, parts: [delta], continues: this.blocks.length === 0 });
  }
}
