import type { AssistantMessage, Usage } from '#libs/contracts';
import type { GenerationOutcome } from '../model/generate.js';
import type { Span, SpanAttributes } from '../ports/spans.js';
import type { TurnRecord } from '../record/record.js';
import { codeOf, idOf } from './words.js';

// Names are those of OpenTelemetry's conventions for generative AI; what these have no word for begins with `harness.`.

/** What is asked of a model. */
function requested({ options }: TurnRecord, operation: string): SpanAttributes {
  const attributes: SpanAttributes = { 'gen_ai.operation.name': operation, 'gen_ai.request.model': idOf(options.model) };
  if (options.provider !== null) attributes['gen_ai.provider.name'] = idOf(options.provider);
  return attributes;
}

/** The name of a generation's span, and what is known before it. */
export const chatSpan = (record: TurnRecord): { name: string; kind: 'client'; attributes: SpanAttributes } => ({
  name: `chat ${idOf(record.options.model)}`,
  kind: 'client',
  attributes: requested(record, 'chat'),
});

/** Notes what a generation came to. */
export function chatOutcome(span: Span, outcome: GenerationOutcome): void {
  const said = outcome.kind === 'message' ? outcome.message : outcome.partial;
  if (said !== null) Object.assign(span.attributes, answered(said));
  if (outcome.kind === 'failed') span.error = codeOf(outcome.failure.code, 'failed');
}

function answered({ model, provider, stop_reason, usage }: AssistantMessage): SpanAttributes {
  const attributes: SpanAttributes = {
    'gen_ai.response.model': idOf(model),
    'gen_ai.provider.name': idOf(provider),
    'gen_ai.response.finish_reasons': [stop_reason],
  };
  return usage == null ? attributes : withUsage(attributes, usage);
}

/** Adds tokens and cost; input counts what was read from and written to a cache, too. */
function withUsage(attributes: SpanAttributes, { input, output, cache_read, cache_write, cost_usd }: Usage): SpanAttributes {
  attributes['gen_ai.usage.input_tokens'] = (input ?? 0) + (cache_read ?? 0) + (cache_write ?? 0);
  attributes['gen_ai.usage.output_tokens'] = output ?? 0;
  if (cache_read) attributes['gen_ai.usage.cache_read.input_tokens'] = cache_read;
  if (cache_write) attributes['gen_ai.usage.cache_creation.input_tokens'] = cache_write;
  if (cost_usd != null) attributes['harness.cost_usd'] = cost_usd;
  return attributes;
}

/** The name and attributes of a call's span. */
export const toolSpan = (functionId: string, callId: string): { name: string; attributes: SpanAttributes } => ({
  name: `execute_tool ${idOf(functionId)}`,
  attributes: {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': idOf(functionId),
    'gen_ai.tool.call.id': idOf(callId),
    'gen_ai.tool.type': 'function',
  },
});

/** The attributes of a turn's span. */
export const agentAttributes = (record: TurnRecord): SpanAttributes => {
  const { totals, status, step, call_count, depth } = record;
  const attributes = requested(record, 'invoke_agent');
  attributes['harness.status'] = status;
  attributes['harness.steps'] = step + 1;
  attributes['harness.calls'] = call_count;
  attributes['harness.depth'] = depth;
  return withUsage(attributes, {
    input: totals.input_tokens,
    output: totals.output_tokens,
    cache_read: totals.cache_read_tokens,
    cache_write: totals.cache_write_tokens,
    cost_usd: totals.cost_usd,
  });
};
