import type { AssistantMessage, Usage } from '#libs/contracts';
import type { GenerationOutcome } from '../model/generate.js';
import type { SpanAttributes } from '../ports/spans.js';
import type { TurnRecord } from '../record/record.js';
import { codeOf, idOf } from './words.js';

// Names are those of OpenTelemetry's conventions for generative AI; what these have no word for begins with `harness.`.

/** What is asked of a model. */
const requested = ({ options }: TurnRecord): SpanAttributes => ({
  'gen_ai.request.model': idOf(options.model),
  ...(options.provider === null ? {} : { 'gen_ai.provider.name': idOf(options.provider) }),
});

/** The name of a generation's span, and what is known before it. */
export const chatSpan = (record: TurnRecord): { name: string; kind: 'client'; attributes: SpanAttributes } => ({
  name: `chat ${idOf(record.options.model)}`,
  kind: 'client',
  attributes: { 'gen_ai.operation.name': 'chat', ...requested(record) },
});

/** What a generation came to: attributes, and a code when it failed. */
export function chatOutcome(outcome: GenerationOutcome): { attributes: SpanAttributes; error: string | null } {
  switch (outcome.kind) {
    case 'message':
      return { attributes: answered(outcome.message), error: null };
    case 'failed':
      return { attributes: outcome.partial === null ? {} : answered(outcome.partial), error: codeOf(outcome.failure.code, 'failed') };
    case 'aborted':
      return { attributes: outcome.partial === null ? {} : answered(outcome.partial), error: null };
    default: {
      const unknown: never = outcome;
      throw new Error(`unknown outcome ${JSON.stringify(unknown)}`);
    }
  }
}

const answered = ({ model, provider, stop_reason, usage }: AssistantMessage): SpanAttributes => ({
  'gen_ai.response.model': idOf(model),
  'gen_ai.provider.name': idOf(provider),
  'gen_ai.response.finish_reasons': [stop_reason],
  ...(usage == null ? {} : used(usage)),
});

/** Input counts what was read from and written to a cache, too. */
const used = ({ input, output, cache_read, cache_write, cost_usd }: Usage): SpanAttributes => ({
  'gen_ai.usage.input_tokens': (input ?? 0) + (cache_read ?? 0) + (cache_write ?? 0),
  'gen_ai.usage.output_tokens': output ?? 0,
  ...(cache_read ? { 'gen_ai.usage.cache_read.input_tokens': cache_read } : {}),
  ...(cache_write ? { 'gen_ai.usage.cache_creation.input_tokens': cache_write } : {}),
  ...(cost_usd == null ? {} : { 'harness.cost_usd': cost_usd }),
});

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
  return {
    'gen_ai.operation.name': 'invoke_agent',
    ...requested(record),
    ...used({
      input: totals.input_tokens,
      output: totals.output_tokens,
      cache_read: totals.cache_read_tokens,
      cache_write: totals.cache_write_tokens,
      cost_usd: totals.cost_usd,
    }),
    'harness.status': status,
    'harness.steps': step + 1,
    'harness.calls': call_count,
    'harness.depth': depth,
  };
};
