import type { AssistantMessage, ContentBlock, JsonValue, StreamFrame, Usage } from '#libs/contracts';

type OpenBlock = { type: 'text' | 'thinking'; text: string } | { type: 'function_call'; id: string; json: string };

/**
 * Builds the message of a stream from its frames, whether they carry whole partials or deltas only. Each frame costs
 * the same however long the message is.
 */
export class MessageAccumulator {
  private base: AssistantMessage | null = null;
  private readonly blocks: ContentBlock[] = [];
  private open: OpenBlock | null = null;
  private usage: Usage | null = null;
  /** The terminal message, once it has come. */
  terminal: { message: AssistantMessage; failed: boolean; retryAfterMs?: number } | null = null;

  constructor(
    private readonly model: string,
    private readonly provider: string,
  ) {}

  /** Takes one frame; returns the text that it adds, for somebody who watches. */
  take(frame: StreamFrame): { kind: 'text' | 'thinking'; delta: string } | null {
    switch (frame.type) {
      case 'start':
        this.base = frame.partial ?? null;
        return null;
      case 'text_start':
      case 'thinking_start':
        this.begin({ type: frame.type === 'text_start' ? 'text' : 'thinking', text: '' });
        return null;
      case 'functioncall_start':
        this.begin({ type: 'function_call', id: frame.id ?? '', json: '' });
        return null;
      case 'text_delta':
      case 'thinking_delta': {
        const kind = frame.type === 'text_delta' ? 'text' : 'thinking';
        if (this.open?.type !== kind) this.begin({ type: kind, text: '' });
        if (this.open?.type === kind) this.open.text += frame.delta;
        return { kind, delta: frame.delta };
      }
      case 'functioncall_delta':
        if (this.open?.type === 'function_call') this.open.json += frame.delta;
        return null;
      case 'text_end':
      case 'thinking_end':
      case 'functioncall_end':
        this.end(frame.partial);
        return null;
      case 'usage':
        this.usage = frame.usage;
        return null;
      case 'ping':
      case 'stop':
        return null;
      case 'done':
        this.terminal = { message: frame.message, failed: false };
        return null;
      case 'error':
        this.terminal = { message: frame.error, failed: true };
        return null;
      default: {
        const unknown: never = frame;
        throw new Error(`unknown frame ${JSON.stringify(unknown)}`);
      }
    }
  }

  /** The message so far, without calls: none of them runs before the whole message is there. Null when nothing has come. */
  partial(now: number): AssistantMessage | null {
    const open: ContentBlock[] = this.open === null || this.open.type === 'function_call' || this.open.text === '' ? [] : [{ type: this.open.type, text: this.open.text }];
    const content = [...this.blocks.filter((block) => block.type !== 'function_call'), ...open];
    if (content.length === 0 && this.usage === null) return null;
    return {
      role: 'assistant', content, model: this.base?.model ?? this.model, provider: this.base?.provider ?? this.provider,
      stop_reason: 'aborted', timestamp: this.base?.timestamp ?? now, usage: this.usage ?? this.base?.usage ?? null,
    };
  }

  private begin(block: OpenBlock): void {
    this.end(undefined);
    this.open = block;
  }

  private end(partial: AssistantMessage | undefined): void {
    const open = this.open;
    this.open = null;
    if (partial !== undefined) {
      this.blocks.splice(0, this.blocks.length, ...partial.content);
      return;
    }
    if (open === null) return;
    if (open.type === 'function_call') this.blocks.push({ type: 'function_call', id: open.id, function_id: '', arguments: open.json as JsonValue });
    else if (open.text !== '') this.blocks.push({ type: open.type, text: open.text });
  }
}
