import type { AssistantMessage, ContentBlock, JsonValue, StreamFrame, Usage } from '#libs/contracts';
import { admitFacts, admitPartial, admitUsage } from './admit.js';

type OpenBlock = { type: 'text' | 'thinking'; text: string } | { type: 'function_call'; id: string; json: string };

/**
 * Builds the message of a stream from its frames, whether they carry whole partials or deltas only. Each frame costs
 * the same however long the message is.
 */
export class MessageAccumulator {
  private base: unknown = null;
  private readonly blocks: ContentBlock[] = [];
  private open: OpenBlock | null = null;
  private usage: Usage | null = null;
  /** The terminal message, once it has come. */
  terminal: { message: unknown; failed: boolean } | null = null;

  constructor(
    private readonly model: string,
    private readonly provider: string,
  ) {}

  /** Takes one frame; returns the text that it adds, for somebody who watches. What is no frame, or one of a later version, adds nothing. */
  take(frame: StreamFrame): { kind: 'text' | 'thinking'; delta: string } | null {
    if (typeof frame !== 'object' || frame === null) return null;
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
        if (typeof frame.delta !== 'string') return null;
        const kind = frame.type === 'text_delta' ? 'text' : 'thinking';
        if (this.open?.type !== kind) this.begin({ type: kind, text: '' });
        if (this.open?.type === kind) this.open.text += frame.delta;
        return { kind, delta: frame.delta };
      }
      case 'functioncall_delta':
        if (this.open?.type === 'function_call' && typeof frame.delta === 'string') this.open.json += frame.delta;
        return null;
      case 'text_end':
      case 'thinking_end':
      case 'functioncall_end':
        this.end(frame.partial);
        return null;
      case 'usage':
        this.usage = admitUsage(frame.usage);
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
        frame satisfies never;
        return null;
      }
    }
  }

  /** The message so far, without calls: none of them runs before the whole message is there. Null when nothing has come. */
  partial(now: number): AssistantMessage | null {
    const open: ContentBlock[] =
      this.open === null || this.open.type === 'function_call' || this.open.text === ''
        ? []
        : [{ type: this.open.type, text: this.open.text }];
    const content = [...this.blocks.filter((block) => block.type !== 'function_call'), ...open];
    if (content.length === 0 && this.usage === null) return null;
    const facts = admitFacts(this.base, { model: this.model, provider: this.provider, now });
    return { role: 'assistant', content, stop_reason: 'aborted', ...facts, usage: this.usage ?? facts.usage };
  }

  private begin(block: OpenBlock): void {
    this.end(undefined);
    this.open = block;
  }

  private end(partial: AssistantMessage | undefined): void {
    const open = this.open;
    this.open = null;
    if (typeof partial === 'object' && partial !== null) {
      this.blocks.length = 0;
      for (const block of admitPartial(partial)) this.blocks.push(block);
      return;
    }
    if (open === null) return;
    if (open.type === 'function_call')
      this.blocks.push({ type: 'function_call', id: open.id, function_id: '', arguments: open.json as JsonValue });
    else if (open.text !== '') this.blocks.push({ type: open.type, text: open.text });
  }
}
