import type OpenAI from 'openai';
import type { StopReason, Usage } from '#libs/contracts';
import type { CallSlot, Outcome } from '../shared/draft.js';
import { readUntil } from '../shared/events.js';
import { VendorFailure } from '../shared/failure.js';
import type { VendorRun } from '../shared/provider.js';

/** What servers add to the delta of a chunk for thinking. */
type Delta = OpenAI.ChatCompletionChunk.Choice.Delta & { reasoning_content?: string | null; reasoning?: unknown };
/** A chunk as servers send it: some leave out what OpenAI always has. */
type Chunk = Omit<OpenAI.ChatCompletionChunk, 'choices' | 'usage'> & {
  choices?: OpenAI.ChatCompletionChunk.Choice[];
  usage?: RawUsage | null;
};
interface RawUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: number | null } | null;
  completion_tokens_details?: { reasoning_tokens?: number | null } | null;
}

/** Reads the chunks of a chat completion into the run's draft. Complete once a finish reason has come; the counts come after it. */
export async function readChat(chunks: AsyncIterable<unknown>, run: VendorRun): Promise<Outcome> {
  const reader = new ChatReader(run);
  try {
    const outcome = (await readUntil(chunks, (chunk) => reader.take(chunk as Chunk), run.cancel)) ?? reader.outcome();
    if (outcome === undefined) throw new VendorFailure('transient', 'the stream ended before a finish reason');
    return outcome;
  } finally {
    reader.stop();
  }
}

/** How long a server may keep a finished answer open, in ms, e.g. one that never sends the counts. */
const COUNTS_MS = 2_000;

class ChatReader {
  private readonly calls = new Map<number, CallSlot>();
  private finish: string | undefined;
  private refused = false;
  private grace: NodeJS.Timeout | undefined;

  constructor(private readonly run: VendorRun) {}

  stop(): void {
    clearTimeout(this.grace);
  }

  /** Takes a chunk; gives the outcome with the counts that follow the finish reason. */
  take(chunk: Chunk): Outcome | undefined | Promise<Outcome | undefined> {
    const choice = chunk.choices?.[0];
    if (choice === undefined && !chunk.usage) return undefined;
    if (choice !== undefined && !chunk.usage && !choice.finish_reason && this.run.draft.started) {
      const sent = this.delta(choice.delta as Delta);
      return sent instanceof Promise ? sent.then(() => undefined) : undefined;
    }
    return this.takeSlowly(chunk, choice);
  }

  /** How the answer ended; undefined when no finish reason has come. */
  outcome(): Outcome | undefined {
    if (this.finish === undefined) return undefined;
    const { draft } = this.run;
    if (this.finish === 'content_filter') {
      return {
        stop_reason: 'error',
        error_kind: 'permanent',
        error_message: 'the answer was withheld by the content filter',
        native_stop_reason: this.finish,
      };
    }
    if (this.refused) draft.warnings.push('the model refused to answer');
    const wanted: StopReason = this.finish === 'length' ? 'length' : draft.hasCalls ? 'function_call' : 'end';
    return { stop_reason: wanted, native_stop_reason: this.finish };
  }

  private async takeSlowly(chunk: Chunk, choice: OpenAI.ChatCompletionChunk.Choice | undefined): Promise<Outcome | undefined> {
    const { draft } = this.run;
    await draft.start();
    if (choice !== undefined) {
      await this.delta((choice.delta ?? {}) as Delta);
      if (choice.finish_reason) this.finish = choice.finish_reason;
      if (this.finish !== undefined) {
        await draft.end();
        this.grace ??= setTimeout(this.run.cancel, COUNTS_MS).unref();
      }
    }
    if (chunk.usage) await draft.usage(usageOf(chunk.usage));
    return chunk.usage && choice === undefined ? this.outcome() : undefined;
  }

  private delta(delta: Delta): void | Promise<void> {
    const { draft } = this.run;
    const thinking = delta.reasoning_content ?? (typeof delta.reasoning === 'string' ? delta.reasoning : '');
    if (thinking !== '' && !delta.content && !delta.tool_calls) return draft.thinking(thinking);
    if (delta.content && thinking === '' && !delta.tool_calls?.length) return draft.text(textOf(delta.content));
    return this.mixed(delta, thinking);
  }

  private async mixed(delta: Delta, thinking: string): Promise<void> {
    const { draft } = this.run;
    await draft.thinking(thinking);
    await draft.text(textOf(delta.content));
    if (delta.refusal) {
      this.refused = true;
      await draft.text(delta.refusal);
    }
    for (const part of delta.tool_calls ?? []) await this.call(part);
  }

  /** Servers differ: some send a call in one piece, some without an index, some give all calls the same index. */
  private async call(part: OpenAI.ChatCompletionChunk.Choice.Delta.ToolCall): Promise<void> {
    const { draft, names } = this.run;
    const index = part.index ?? (part.id ? this.calls.size : Math.max(0, this.calls.size - 1));
    let slot = this.calls.get(index);
    const another = slot !== undefined && part.id && part.id !== slot.id && part.function?.name;
    if (slot === undefined || another) {
      slot = await draft.openCall(part.id || `call_${index}`, names.functionId(part.function?.name ?? ''));
      this.calls.set(index, slot);
    }
    const text = part.function?.arguments as unknown;
    await draft.argumentText(slot, typeof text === 'string' ? text : text === undefined || text === null ? '' : JSON.stringify(text));
  }
}

/** Some servers send content as a list of parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown } | null) => (typeof part?.text === 'string' ? part.text : '')).join('');
}

/** OpenAI counts cached tokens as input too; ours are apart. */
function usageOf(usage: RawUsage): Usage {
  const cache_read = usage.prompt_tokens_details?.cached_tokens ?? undefined;
  const cache_write = usage.prompt_tokens_details?.cache_write_tokens ?? undefined;
  return {
    input: usage.prompt_tokens === undefined ? undefined : Math.max(0, usage.prompt_tokens - (cache_read ?? 0) - (cache_write ?? 0)),
    output: usage.completion_tokens,
    cache_read,
    cache_write,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? undefined,
  };
}
