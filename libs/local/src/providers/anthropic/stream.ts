import type Anthropic from '@anthropic-ai/sdk';
import type { ServerSentEvent } from '@anthropic-ai/sdk/core/streaming';
import type { StopReason, Usage } from '#libs/contracts';
import type { AssistantDraft, CallSlot, Outcome, Sent } from '../shared/draft.js';
import { readUntil } from '../shared/events.js';
import { VendorFailure } from '../shared/failure.js';
import type { VendorRun } from '../shared/provider.js';

type Event = Anthropic.RawMessageStreamEvent | { type: 'ping' } | { type: 'error'; error?: unknown };

/** Reads the events of a Messages stream into the run's draft. Resolves at `message_stop`. */
export async function readMessages(events: AsyncIterable<ServerSentEvent>, run: VendorRun): Promise<Outcome> {
  const reader = new MessagesReader(run);
  const outcome = await readUntil(events, (sse) => (sse.data === '' ? undefined : reader.take(JSON.parse(sse.data) as Event)), run.cancel);
  if (outcome === undefined) throw new VendorFailure('transient', 'the stream ended before its last event');
  return outcome;
}

type Taken = Sent | Outcome | undefined;

class MessagesReader {
  private readonly calls = new Map<number, CallSlot>();
  private native: string | undefined;
  private refusal: string | undefined;

  constructor(private readonly run: VendorRun) {}

  take(event: Event): Promise<Outcome | undefined> | Outcome | undefined {
    const taken = this.apply(event);
    return taken instanceof Promise ? taken.then(() => undefined) : (taken ?? undefined);
  }

  private apply(event: Event): Taken {
    const { draft } = this.run;
    switch (event.type) {
      case 'ping':
        return this.run.ping();
      case 'message_start':
        return this.started(event);
      case 'content_block_start':
        return openBlock(event, this.run, this.calls);
      case 'content_block_delta':
        return applyDelta(event, draft, this.calls);
      case 'content_block_stop':
        return draft.end();
      case 'message_delta':
        this.native = event.delta.stop_reason ?? this.native;
        this.refusal = event.delta.stop_details?.explanation ?? this.refusal;
        return draft.usage(usageOf(event.usage));
      case 'message_stop':
        return ended(this.native, this.refusal, draft);
      case 'error':
        throw Object.assign(new Error('the vendor ended the stream'), { error: event.error ?? event });
      default:
        event satisfies never;
        return undefined; // a kind of event that is not known changes nothing
    }
  }

  private async started(event: Anthropic.RawMessageStartEvent): Promise<void> {
    await this.run.draft.start();
    await this.run.draft.usage(usageOf(event.message.usage));
  }
}

async function openBlock(
  event: Anthropic.RawContentBlockStartEvent,
  { draft, names }: VendorRun,
  calls: Map<number, CallSlot>,
): Promise<void> {
  const block = event.content_block;
  switch (block.type) {
    case 'text':
      await draft.text(block.text);
      break;
    case 'thinking':
      await draft.openThinking();
      await draft.thinking(block.thinking);
      if (block.signature) draft.sign(block.signature);
      break;
    case 'redacted_thinking':
      await draft.redacted(block.data);
      break;
    case 'tool_use': {
      const slot = await draft.openCall(block.id, names.functionId(block.name));
      calls.set(event.index, slot);
      if (Object.keys((block.input ?? {}) as object).length > 0) await draft.argumentText(slot, JSON.stringify(block.input));
      break;
    }
    default:
      break; // blocks of the vendor's own tools, which no request of ours offers
  }
}

function applyDelta(event: Anthropic.RawContentBlockDeltaEvent, draft: AssistantDraft, calls: Map<number, CallSlot>): void | Promise<void> {
  const { delta } = event;
  switch (delta.type) {
    case 'text_delta':
      return draft.text(delta.text);
    case 'thinking_delta':
      return draft.thinking(delta.thinking);
    case 'signature_delta':
      return draft.sign(delta.signature);
    case 'input_json_delta': {
      const slot = calls.get(event.index);
      return slot === undefined ? undefined : draft.argumentText(slot, delta.partial_json);
    }
    case 'citations_delta':
      return undefined;
    default:
      delta satisfies never;
      return undefined;
  }
}

/** The counts are totals; those of the last event replace those of the first. */
function usageOf(usage: Partial<Anthropic.Usage> | Anthropic.MessageDeltaUsage | null | undefined): Usage {
  return {
    input: usage?.input_tokens,
    output: usage?.output_tokens,
    cache_read: usage?.cache_read_input_tokens,
    cache_write: usage?.cache_creation_input_tokens,
    reasoning: usage?.output_tokens_details?.thinking_tokens,
  };
}

const STOPS: { readonly [native: string]: StopReason } = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'function_call',
  end_turn: 'end',
  stop_sequence: 'end',
  pause_turn: 'end',
};

function ended(native: string | undefined, refusal: string | undefined, draft: AssistantDraft): Outcome {
  if (native === 'refusal') {
    const error_message = `the model declined to answer${refusal ? `: ${refusal}` : ''}`;
    return { stop_reason: 'error', error_kind: 'permanent', error_message, native_stop_reason: native };
  }
  const stop = STOPS[native ?? ''] ?? 'end';
  const stop_reason = stop === 'end' && draft.hasCalls ? 'function_call' : stop;
  return { stop_reason: stop_reason === 'function_call' && !draft.hasCalls ? 'end' : stop_reason, native_stop_reason: native };
}
