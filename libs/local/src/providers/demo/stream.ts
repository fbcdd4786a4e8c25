import type { AssistantMessage, ContentBlock, JsonValue, StopReason, StreamFrame, Usage } from '#libs/contracts';
import type { ChannelWriter } from '#libs/iii';
import type { ProviderErrorFrame } from '../shared/adapter.js';
import { asTool, type Part, type Prompt, type Reply } from './reply.js';
import { usageOf } from './usage.js';

/** How long a pause may be before a ping is due. */
const PING_MS = 15_000;

/** Names the message that is streamed. */
export interface StreamHeader {
  model: string;
  systemPrompt: string | null;
  /** The pause before each word where the reply names none, in ms. */
  pauseMs: number;
  /** Ms since the epoch. */
  timestamp: number;
}

/** Streams a reply word by word, and ends it with one terminal frame; a reader that leaves makes it `aborted`. */
export async function streamReply(reply: Reply, prompt: Prompt, header: StreamHeader, writer: ChannelWriter): Promise<void> {
  await new ReplyStream(reply, prompt, header, writer).run();
}

class ReplyStream {
  private readonly content: ContentBlock[] = [];

  constructor(
    private readonly reply: Reply,
    private readonly prompt: Prompt,
    private readonly header: StreamHeader,
    private readonly writer: ChannelWriter,
  ) {}

  async run(): Promise<void> {
    await this.send({ type: 'start', partial: this.message('end') });
    for (const [index, part] of this.reply.parts.entries()) {
      if (this.writer.signal.aborted) break;
      await this.part(part, index);
    }
    if (this.writer.signal.aborted) return await this.end('aborted');
    const { end } = this.reply;
    if ('stop_reason' in end) return await this.end(end.stop_reason);
    const { kind, message: error_message, retryAfterMs } = end.error;
    const error: AssistantMessage = { ...this.message('error'), usage: this.usage(), error_kind: kind, error_message };
    await this.send({
      type: 'error',
      error,
      ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
    } satisfies ProviderErrorFrame);
  }

  private async part(part: Part, index: number): Promise<void> {
    switch (part.type) {
      case 'text':
      case 'thinking':
        return await this.words(part.type, part.text, part.pauseMs);
      case 'call': {
        const { function_id, arguments: args } = asTool(part.call, this.prompt.tools);
        return await this.call(`demo_${this.prompt.messages.length}_${index}`, function_id, args, part.pauseMs);
      }
      default: {
        const never: never = part;
        throw new Error(`no such part: ${String(never)}`);
      }
    }
  }

  private async words(type: 'text' | 'thinking', text: string, pauseMs: number | undefined): Promise<void> {
    await this.send({ type: `${type}_start`, partial: this.with({ type, text: '' }) });
    let said = '';
    for (const delta of text.match(/\s*\S+\s*|\s+/g) ?? []) {
      await this.pause(pauseMs);
      if (this.writer.signal.aborted) break;
      const sent = this.writer.send({ type: `${type}_delta`, delta } satisfies StreamFrame);
      if (sent !== undefined) await sent;
      said += delta;
    }
    this.content.push({ type, text: said });
    await this.send({ type: `${type}_end`, partial: this.message('end') });
  }

  private async call(id: string, function_id: string, args: JsonValue, pauseMs: number | undefined): Promise<void> {
    await this.send({ type: 'functioncall_start', id, partial: this.with({ type: 'function_call', id, function_id, arguments: {} }) });
    await this.pause(pauseMs);
    if (this.writer.signal.aborted) return;
    await this.send({ type: 'functioncall_delta', id, delta: JSON.stringify(args) });
    this.content.push({ type: 'function_call', id, function_id, arguments: args });
    await this.send({ type: 'functioncall_end', partial: this.message('function_call') });
  }

  private async end(stop_reason: StopReason): Promise<void> {
    const usage = this.usage();
    await this.send({ type: 'usage', usage });
    await this.send({ type: 'done', message: { ...this.message(stop_reason), usage } });
  }

  private usage(): Usage {
    return usageOf(this.prompt, this.header.systemPrompt, this.content);
  }

  private message(stop_reason: StopReason): AssistantMessage {
    const { model, timestamp } = this.header;
    return { role: 'assistant', content: [...this.content], model, provider: 'demo', stop_reason, timestamp };
  }

  private with(block: ContentBlock): AssistantMessage {
    const message = this.message('end');
    message.content.push(block);
    return message;
  }

  private async send(frame: StreamFrame | ProviderErrorFrame): Promise<void> {
    await this.writer.send(frame);
  }

  private async pause(pauseMs: number | undefined): Promise<void> {
    for (let left = pauseMs ?? this.header.pauseMs; left > 0 && !this.writer.signal.aborted; left -= PING_MS) {
      await sleep(Math.min(left, PING_MS), this.writer.signal);
      if (left > PING_MS) await this.send({ type: 'ping' });
    }
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}
