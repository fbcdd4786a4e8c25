import { type AgentMessage, type Entry, entryIds, errorCode, errorMessage, type Usage } from '#libs/contracts';
import { withSummary } from '#libs/prompts';
import type { LoopPorts } from '../loop/ports.js';
import type { TurnFailure } from '../machine/decision.js';
import type { Generation } from '../model/generate.js';
import { userText } from '../model/text.js';
import type { TurnRecord } from '../record/record.js';
import { type CompactionData, compactionOf, entryOf } from './compaction.js';
import { jsonTokens, messageTokens, textTokens, toolTokens } from './estimate.js';

/** What putting a request together came to. Tokens are estimates; `usable` is null where no limit of the model is known. */
export type Assembly =
  | { kind: 'ready'; generation: Generation; tokens: number; usable: number | null; spent: Usage | null; notice?: string }
  /** The older part was summed up: to be stored before anything is generated. */
  | { kind: 'compacted'; data: CompactionData; usage: Usage | null }
  | { kind: 'failed'; failure: TurnFailure };

/** What a request is to be made of. */
export interface AssemblyInput {
  record: TurnRecord;
  window: readonly Entry[];
  generation: Generation;
  /** Tokens that the request may have at most, beside what the limits of the model say; null = no more than those. */
  ceiling: number | null;
  /** Tokens that hooks will add. */
  overhead: number;
  signal: AbortSignal;
}

/** What a context worker answers; `summary_usage` is what its summary has cost, where it says so. */
interface AssembleResponse {
  system_prompt: string;
  messages: AgentMessage[];
  token_count: number;
  usable: number;
  effective_max_output_tokens: number;
  applied: {
    initial_token_count: number;
    compacted: boolean;
    summary?: string | null;
    tail_start_index?: number | null;
    tokens_before?: number | null;
    summary_usage?: Usage | null;
  };
}

/** Fields of a request that are neither prompt nor messages nor tools, and what each message takes besides its content. */
const FRAMING_TOKENS = 64;
const MESSAGE_FRAMING_TOKENS = 4;

/** Room for an answer where a ceiling takes the place of the model's own limits. */
const CEILING_OUTPUT_TOKENS = 1_024;

/**
 * Puts the request of a step together within what the model takes, by the context worker. Without one, or when it fails, the
 * messages go as they are where they fit. A model whose limits nobody knows gets everything: it says itself when that is too much.
 */
export async function assembleContext(ports: LoopPorts, input: AssemblyInput): Promise<Assembly> {
  const limit = input.ceiling ?? (await knownLimit(ports, input.record));
  if (limit === null) return asItIs(input, null);
  try {
    return outcomeOf(input, await ask(ports, input));
  } catch (error) {
    if (errorCode(error) === 'context/overflow') return { kind: 'failed', failure: overflow(input.record, errorMessage(error)) };
    const absent = errorCode(error) === 'function_not_found';
    const raw = asItIs(input, limit);
    const why = absent ? 'there is no context worker' : `the context worker failed (${errorMessage(error)})`;
    if (raw.tokens > limit) {
      const message = `the conversation takes about ${raw.tokens} tokens, the model ${limit}; it cannot be made smaller, since ${why}`;
      return { kind: 'failed', failure: overflow(input.record, message) };
    }
    return absent ? raw : { ...raw, notice: `The conversation goes to the model as it is: ${why}.` };
  }
}

/** Why a request that does not fit ends the turn. */
export const overflow = ({ options }: TurnRecord, message: string): TurnFailure => ({
  code: 'harness.context_overflow',
  message,
  retryable: false,
  kind: 'context_overflow',
  model: options.model,
  ...(options.provider === null ? {} : { provider: options.provider }),
});

/** Why a request that the model has refused cannot be sent smaller: with what the model said. */
export const refusedAgain = (refused: { reason: string } | null, failure: TurnFailure): TurnFailure =>
  refused === null
    ? failure
    : { ...failure, message: `the model refused the request as too large (${refused.reason}), and then: ${failure.message}` };

/** Tokens of a request as it is sent. */
export const requestTokens = ({ system_prompt, messages, tools, response_format }: Generation): number =>
  textTokens(system_prompt) +
  toolTokens(tools) +
  messages.reduce((sum, message) => sum + messageTokens(message), 0) +
  framing(messages.length, response_format);

const framing = (messages: number, format: Generation['response_format']): number =>
  FRAMING_TOKENS + MESSAGE_FRAMING_TOKENS * messages + (format === undefined ? 0 : jsonTokens(format));

/** What the model takes as input, by the catalog of the router; null when that does not know. */
async function knownLimit({ bus }: LoopPorts, { options }: TurnRecord): Promise<number | null> {
  interface Budget {
    model: { context_window: number; input_limit?: number | null };
    effective_max_output_tokens: number;
  }
  try {
    const budget = await bus.trigger<Budget | null>({
      function_id: 'router::models::budget',
      payload: { id: options.model, ...(options.provider === null ? {} : { provider: options.provider }) },
    });
    if (budget === null || budget.model.context_window <= 0) return null;
    return budget.model.input_limit ?? Math.max(0, budget.model.context_window - budget.effective_max_output_tokens);
  } catch {
    return null; // the generation itself will say what is wrong with the model
  }
}

async function ask({ bus, settings }: LoopPorts, input: AssemblyInput): Promise<AssembleResponse> {
  const { record, window, generation, ceiling, overhead, signal } = input;
  const { model, provider, thinking_level } = record.options;
  const compaction = compactionOf(window);
  const limits =
    ceiling === null
      ? {}
      : { limits: { context_window: ceiling + CEILING_OUTPUT_TOKENS, max_output_tokens: CEILING_OUTPUT_TOKENS, input_limit: ceiling } };
  const response = await bus.trigger<AssembleResponse>({
    function_id: 'context::assemble',
    repeatable: true,
    payload: {
      model: { id: model, ...(provider === null ? {} : { provider }), ...limits },
      messages: generation.messages,
      system_prompt: generation.system_prompt,
      tools: generation.tools,
      options: {
        lease_key: record.session_id,
        previous_summary: compaction?.summary ?? null,
        request_overhead_tokens: framing(generation.messages.length, generation.response_format) + overhead,
        allow_prune: !generation.messages.some(holdsThinking),
        allow_compaction: mayCompact(record, window),
        ...(ceiling === null ? {} : { reserved_tokens: 0 }),
        ...(thinking_level === null ? {} : { thinking_level }),
      },
    },
    timeoutMs: settings.current().context_timeout_ms,
    signal,
  });
  if (!Array.isArray(response.messages) || response.messages.length === 0 || typeof response.system_prompt !== 'string')
    throw new Error('its answer holds no request');
  return response;
}

/** A step stores one summary at most: whatever comes of it, and whatever a worker says, there is no second. */
const mayCompact = ({ turn_id, step }: TurnRecord, window: readonly Entry[]): boolean =>
  compactionOf(window)?.id !== entryIds.compaction(turn_id, step);

/** Thinking may be bound to all that stood before it, so nothing before it is changed without need. */
const holdsThinking = ({ role, content }: AgentMessage): boolean =>
  role === 'assistant' &&
  content.some((block) => block.type === 'redacted_thinking' || (block.type === 'thinking' && block.signature != null));

function outcomeOf({ record, window, generation }: AssemblyInput, response: AssembleResponse): Assembly {
  const { applied, system_prompt, messages, token_count, usable, effective_max_output_tokens } = response;
  const usage = applied.summary_usage ?? null;
  const stored = mayCompact(record, window) && applied.compacted && applied.summary != null && applied.summary.trim() !== '';
  if (!stored || applied.summary == null)
    return { kind: 'ready', generation: { ...generation, system_prompt, messages }, tokens: token_count, usable, spent: usage };
  return {
    kind: 'compacted',
    usage,
    data: {
      summary: applied.summary,
      tail_start_entry_id: tailOf(window, generation.messages, applied.tail_start_index ?? null),
      tokens_before: applied.tokens_before ?? 0,
      summarized_head_tokens: applied.tokens_before ?? 0,
      initial_token_count: applied.initial_token_count,
      assembled_token_count: token_count,
      usable_input_tokens: usable,
      effective_max_output_tokens,
    },
  };
}

/** The entry where what is kept begins. What the model is to answer is always kept, also when a worker has summed up everything. */
function tailOf(window: readonly Entry[], messages: readonly AgentMessage[], index: number | null): string | null {
  const last = messages.findLastIndex((message) => message.role !== 'function_result');
  const from = Math.min(index ?? last, last);
  return entryOf(window, messages[from]) ?? null;
}

function asItIs({ window, generation }: AssemblyInput, usable: number | null): Extract<Assembly, { kind: 'ready' }> {
  const summary = compactionOf(window)?.summary ?? null;
  const whole: Generation = {
    ...generation,
    system_prompt: withSummary(generation.system_prompt, summary),
    messages: startingWithUser(generation.messages),
  };
  return { kind: 'ready', generation: whole, tokens: requestTokens(whole), usable, spent: null };
}

const GO_ON = 'The conversation up to here is summed up in the system prompt. Go on from there.';

/** Messages that begin in the middle of a turn get a user message before them: no model takes another beginning. */
export function startingWithUser(messages: AgentMessage[]): AgentMessage[] {
  const first = messages[0];
  return first === undefined || first.role === 'user' ? messages : [userText(GO_ON, first.timestamp), ...messages];
}
