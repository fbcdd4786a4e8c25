import type { Model, ThinkingLevel } from '#libs/contracts';
import type { Bus } from '#libs/iii';

/** The model that a context is for. Inline limits, in tokens, take the place of what the router knows. */
export interface ModelInput {
  id: string;
  provider?: string | null;
  limits?: { context_window: number; max_output_tokens: number; input_limit?: number | null } | null;
}

/** What a request to a model may take, in tokens. */
export interface Budget {
  /** Of system prompt, messages, tools and the rest together. */
  usable: number;
  /** Of the answer. */
  max_output: number;
  resolved: 'inline' | 'router' | 'fallback';
}

interface Limits {
  window: number;
  input: number | null;
  output: number;
  thinking: number;
}

/** A model that nobody knows is taken for a small one. */
const FALLBACK: Limits = { window: 8_192, input: null, output: 1_024, thinking: 0 };
const MAX_RESERVE = 20_000;
const RESERVED_PART = 0.1;

/** What a request to the model may take. The router is asked unless limits are given. */
export async function budgetOf(
  bus: Bus,
  model: ModelInput,
  { reserved_tokens: reserved, thinking_level: level }: { reserved_tokens?: number | null; thinking_level?: ThinkingLevel | null },
): Promise<Budget> {
  const inline = model.limits ?? null;
  const found =
    inline === null
      ? await fromRouter(bus, model, level ?? null)
      : { window: inline.context_window, input: inline.input_limit ?? null, output: inline.max_output_tokens, thinking: 0 };
  const { window, input, output, thinking } = found ?? FALLBACK;
  const kept = reserved ?? Math.min(MAX_RESERVE, Math.floor(window * RESERVED_PART));
  return {
    usable: Math.max(0, (input ?? window - output) - kept - thinking),
    max_output: output,
    resolved: inline !== null ? 'inline' : found === null ? 'fallback' : 'router',
  };
}

async function fromRouter(bus: Bus, { id, provider }: ModelInput, level: ThinkingLevel | null): Promise<Limits | null> {
  interface Answer {
    model: Model;
    effective_max_output_tokens: number;
  }
  let answer: Answer | null;
  try {
    answer = await bus.trigger<Answer | null>({
      function_id: 'router::models::budget',
      payload: { id, ...(provider == null ? {} : { provider }) },
    });
  } catch {
    return null; // no router, or one that cannot tell: the fallback says so in the answer
  }
  if (answer === null || answer.model.context_window <= 0) return null;
  const { model, effective_max_output_tokens: effective } = answer;
  return {
    window: model.context_window,
    input: model.input_limit ?? null,
    output: effective > 0 ? effective : model.max_output_tokens,
    thinking: (level === null ? undefined : model.thinking_budgets?.[level]) ?? 0,
  };
}
