import type { Model } from '#libs/contracts';

/** Tokens that a model with a budget may think, by level. */
export const THINKING_BUDGETS = { minimal: 1_024, low: 4_096, medium: 10_240, high: 24_576, xhigh: 32_000 };

const BEFORE_4_7 = ['low', 'medium', 'high', 'max'];
const SINCE_4_7 = ['low', 'medium', 'high', 'xhigh', 'max'];

interface Row {
  id: string;
  name: string;
  context: number;
  output: number;
  price?: [input: number, output: number];
  efforts?: string[];
  structured?: boolean;
}

const row = ({ id, name, context, output, price, efforts, structured = true }: Row): Model => ({
  id,
  provider: 'anthropic',
  display_name: name,
  context_window: context,
  max_output_tokens: output,
  ...(price === undefined ? {} : { pricing: pricing(...price) }),
  supports_tools: true,
  supports_vision: true,
  supports_cache: true,
  supports_structured_output: structured,
  supports_thinking: true,
  supports_xhigh: efforts?.includes('xhigh') ?? false,
  ...(efforts === undefined ? { thinking_budgets: THINKING_BUDGETS } : { reasoning_efforts: efforts.map((effort) => ({ effort })) }),
});

/** Reading the cache costs a tenth of input, writing it for five minutes a quarter more. */
const pricing = (input: number, output: number): Model['pricing'] => ({
  input,
  output,
  cache_read: round(input * 0.1),
  cache_write: round(input * 1.25),
});
const round = (price: number): number => Math.round(price * 1e6) / 1e6;

const MILLION = 1_000_000;

/** Models that are known without asking. A row with `reasoning_efforts` thinks adaptively, one with `thinking_budgets` by budget. */
export const ANTHROPIC_MODELS: readonly Model[] = [
  row({ id: 'claude-fable-5-2', name: 'Claude Fable 5.2', context: MILLION, output: 128_000, price: [8, 40], efforts: SINCE_4_7 }),
  row({ id: 'claude-fable-5-1', name: 'Claude Fable 5.1', context: MILLION, output: 128_000, price: [10, 50], efforts: SINCE_4_7 }),
  row({ id: 'claude-opus-5-5', name: 'Claude Opus 5.5', context: MILLION, output: 128_000, price: [4, 20], efforts: SINCE_4_7 }),
  row({ id: 'claude-opus-5', name: 'Claude Opus 5', context: MILLION, output: 128_000, price: [5, 25], efforts: SINCE_4_7 }),
  row({ id: 'claude-opus-4-8', name: 'Claude Opus 4.8', context: MILLION, output: 128_000, price: [5, 25], efforts: SINCE_4_7 }),
  row({ id: 'claude-opus-4-7', name: 'Claude Opus 4.7', context: MILLION, output: 128_000, price: [5, 25], efforts: SINCE_4_7 }),
  row({ id: 'claude-opus-4-6', name: 'Claude Opus 4.6', context: MILLION, output: 128_000, price: [5, 25], efforts: BEFORE_4_7 }),
  row({ id: 'claude-sonnet-5-5', name: 'Claude Sonnet 5.5', context: MILLION, output: 128_000, price: [2, 10], efforts: SINCE_4_7 }),
  row({ id: 'claude-sonnet-5', name: 'Claude Sonnet 5', context: MILLION, output: 128_000, price: [2, 10], efforts: SINCE_4_7 }),
  row({ id: 'claude-sonnet-4-6', name: 'Claude Sonnet 4.6', context: MILLION, output: 128_000, price: [3, 15], efforts: BEFORE_4_7 }),
  row({ id: 'claude-haiku-5-5', name: 'Claude Haiku 5.5', context: MILLION, output: 128_000, efforts: SINCE_4_7 }),
  row({ id: 'claude-opus-4-5', name: 'Claude Opus 4.5', context: 200_000, output: 64_000, price: [5, 25] }),
  row({ id: 'claude-sonnet-4-5', name: 'Claude Sonnet 4.5', context: 200_000, output: 64_000, price: [3, 15] }),
  row({ id: 'claude-haiku-4-5', name: 'Claude Haiku 4.5', context: 200_000, output: 64_000, price: [1, 5] }),
  row({ id: 'claude-opus-4-1', name: 'Claude Opus 4.1', context: 200_000, output: 32_000, price: [15, 75], structured: false }),
];

/** True for a Claude model that thinks by a token budget and not adaptively: those before 4.6. */
export function thinksByBudget(id: string, model: Model | undefined): boolean {
  if (model?.thinking_budgets !== undefined) return true;
  if (model?.reasoning_efforts !== undefined) return false;
  const version = versionOf(id);
  return version !== undefined && version < 406;
}

/** True for a Claude model whose thinking is bound to all that stood before it: those since 5.1. */
export const bindsThinking = (id: string): boolean => (versionOf(id) ?? 0) >= 501;

/** The version in a model's id as a number, e.g. 405 for `claude-opus-4-5-20251101`. */
function versionOf(id: string): number | undefined {
  const version = /claude-(?:[a-z]+-)?(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(id);
  return version === null ? undefined : Number(version[1]) * 100 + Number(version[2] ?? 0);
}
