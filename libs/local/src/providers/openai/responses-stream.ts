import type OpenAI from 'openai';
import type { Usage } from '#libs/contracts';
import type { CallSlot, Outcome, Sent } from '../shared/draft.js';
import { readUntil } from '../shared/events.js';
import { VendorFailure } from '../shared/failure.js';
import type { VendorRun } from '../shared/provider.js';
import { keep, SEPARATOR } from './reasoning-item.js';

type Event = OpenAI.Responses.ResponseStreamEvent;
type Taken = Sent | Outcome | undefined | Promise<Outcome>;

/** Reads the events of a Responses stream into the run's draft. Resolves at `response.completed` or `response.incomplete`. */
export async function readResponses(events: AsyncIterable<unknown>, run: VendorRun): Promise<Outcome> {
  const reader = new ResponsesReader(run);
  const outcome = await readUntil(events, (event) => reader.take(event as Event), run.cancel);
  if (outcome === undefined) throw new VendorFailure('transient', 'the stream ended before its last event');
  return outcome;
}

class ResponsesReader {
  private readonly calls = new Map<number, CallSlot>();
  private refused = false;

  constructor(private readonly run: VendorRun) {}

  take(event: Event): Promise<Outcome | undefined> | Outcome | undefined {
    const taken = this.apply(event);
    return taken instanceof Promise ? taken.then((outcome) => outcome ?? undefined) : (taken ?? undefined);
  }

  private apply(event: Event): Taken {
    const { draft } = this.run;
    switch (event.type) {
      case 'response.created':
        return draft.start();
      case 'response.output_text.delta':
        return draft.text(event.delta);
      case 'response.refusal.delta':
        this.refused = true;
        return draft.text(event.delta);
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return draft.thinking(event.delta);
      case 'response.reasoning_summary_part.added':
        return event.summary_index > 0 ? draft.thinking(SEPARATOR) : undefined;
      case 'response.function_call_arguments.delta':
        return this.argumentText(event.output_index, event.delta);
      case 'response.output_item.added':
        return this.opened(event.output_index, event.item);
      case 'response.output_item.done':
        return this.closed(event.output_index, event.item);
      case 'response.completed':
        return this.ended(event.response, draft.hasCalls ? 'function_call' : 'end');
      case 'response.incomplete':
        return this.incomplete(event.response);
      case 'response.failed':
        throw Object.assign(new Error('the response failed'), { error: event.response.error ?? { message: 'the response failed' } });
      case 'error':
        throw Object.assign(new Error('the vendor ended the stream'), { error: event });
      default:
        return undefined; // progress of the vendor's own tools, repetitions of what the deltas said
    }
  }

  private argumentText(index: number, delta: string): void | Promise<void> {
    const slot = this.calls.get(index);
    return slot === undefined ? undefined : this.run.draft.argumentText(slot, delta);
  }

  private async opened(index: number, item: OpenAI.Responses.ResponseOutputItem): Promise<void> {
    const { draft, names } = this.run;
    if (item.type === 'reasoning') await draft.openThinking();
    if (item.type !== 'function_call') return;
    this.calls.set(index, await draft.openCall(item.call_id, names.functionId(item.name)));
  }

  private async closed(index: number, item: OpenAI.Responses.ResponseOutputItem): Promise<void> {
    const { draft } = this.run;
    const slot = this.calls.get(index);
    if (item.type === 'function_call' && slot !== undefined && slot.raw === '') await draft.argumentText(slot, item.arguments);
    if (item.type === 'reasoning') await draft.keepThinking(keep(item));
    await draft.end();
  }

  private async ended(response: OpenAI.Responses.Response, stop_reason: Outcome['stop_reason'], native = 'completed'): Promise<Outcome> {
    const { draft } = this.run;
    await draft.usage(usageOf(response.usage));
    if (this.refused) draft.warnings.push('the model refused to answer');
    return { stop_reason, native_stop_reason: native };
  }

  private async incomplete(response: OpenAI.Responses.Response): Promise<Outcome> {
    const reason = response.incomplete_details?.reason ?? 'incomplete';
    const outcome = await this.ended(response, 'length', reason);
    if (reason !== 'content_filter') return outcome;
    return { ...outcome, stop_reason: 'error', error_kind: 'permanent', error_message: 'the answer was withheld by the content filter' };
  }
}

/** OpenAI counts cached tokens as input too; ours are apart. */
function usageOf(usage: OpenAI.Responses.ResponseUsage | null | undefined): Usage {
  if (!usage) return {};
  const cache_read = usage.input_tokens_details?.cached_tokens;
  const cache_write = usage.input_tokens_details?.cache_write_tokens;
  return {
    input: Math.max(0, usage.input_tokens - (cache_read ?? 0) - (cache_write ?? 0)),
    output: usage.output_tokens,
    cache_read,
    cache_write,
    reasoning: usage.output_tokens_details?.reasoning_tokens,
  };
}
