import type { Model } from '#libs/contracts';

interface Row {
  id: string;
  name: string;
  context: number;
  output: number;
  price: [input: number, cached: number, output: number];
  efforts?: string[];
  vision?: boolean;
}

const row = ({ id, name, context, output, price: [input, cache_read, out], efforts, vision = true }: Row): Model => ({
  id,
  provider: 'openai',
  display_name: name,
  context_window: context,
  max_output_tokens: output,
  pricing: { input, output: out, cache_read },
  supports_tools: true,
  supports_vision: vision,
  supports_cache: true,
  supports_structured_output: true,
  supports_thinking: efforts !== undefined,
  supports_xhigh: efforts?.includes('xhigh') ?? false,
  ...(efforts === undefined ? {} : { reasoning_efforts: efforts.map((effort) => ({ effort })) }),
});

const O_SERIES = ['low', 'medium', 'high'];
const GPT_5 = ['minimal', 'low', 'medium', 'high'];
const GPT_5_1 = ['none', 'low', 'medium', 'high'];
const GPT_5_2 = ['none', 'low', 'medium', 'high', 'xhigh'];

/** Models that are known without asking. */
export const OPENAI_MODELS: readonly Model[] = [
  row({ id: 'gpt-5.4', name: 'GPT-5.4', context: 1_050_000, output: 128_000, price: [2.5, 0.25, 15], efforts: GPT_5_2 }),
  row({ id: 'gpt-5.4-mini', name: 'GPT-5.4 mini', context: 400_000, output: 128_000, price: [0.75, 0.075, 4.5], efforts: GPT_5_2 }),
  row({ id: 'gpt-5.4-nano', name: 'GPT-5.4 nano', context: 400_000, output: 128_000, price: [0.2, 0.02, 1.25], efforts: GPT_5_2 }),
  row({ id: 'gpt-5.2', name: 'GPT-5.2', context: 400_000, output: 128_000, price: [1.75, 0.175, 14], efforts: GPT_5_2 }),
  row({ id: 'gpt-5.1', name: 'GPT-5.1', context: 400_000, output: 128_000, price: [1.25, 0.125, 10], efforts: GPT_5_1 }),
  row({ id: 'gpt-5', name: 'GPT-5', context: 400_000, output: 128_000, price: [1.25, 0.125, 10], efforts: GPT_5 }),
  row({ id: 'gpt-5-mini', name: 'GPT-5 mini', context: 400_000, output: 128_000, price: [0.25, 0.025, 2], efforts: GPT_5 }),
  row({ id: 'gpt-5-nano', name: 'GPT-5 nano', context: 400_000, output: 128_000, price: [0.05, 0.005, 0.4], efforts: GPT_5 }),
  row({ id: 'o3', name: 'o3', context: 200_000, output: 100_000, price: [2, 0.5, 8], efforts: O_SERIES }),
  row({ id: 'o4-mini', name: 'o4-mini', context: 200_000, output: 100_000, price: [1.1, 0.275, 4.4], efforts: O_SERIES }),
  row({ id: 'gpt-4.1', name: 'GPT-4.1', context: 1_047_576, output: 32_768, price: [2, 0.5, 8] }),
  row({ id: 'gpt-4.1-mini', name: 'GPT-4.1 mini', context: 1_047_576, output: 32_768, price: [0.4, 0.1, 1.6] }),
  row({ id: 'gpt-4.1-nano', name: 'GPT-4.1 nano', context: 1_047_576, output: 32_768, price: [0.1, 0.025, 0.4] }),
  row({ id: 'gpt-4o', name: 'GPT-4o', context: 128_000, output: 16_384, price: [2.5, 1.25, 10] }),
  row({ id: 'gpt-4o-mini', name: 'GPT-4o mini', context: 128_000, output: 16_384, price: [0.15, 0.075, 0.6] }),
];

/** True for a model that reasons before it answers, by the row of the catalog or else by its name. */
export function reasons(id: string, model: Model | undefined): boolean {
  if (model?.supports_thinking !== undefined) return model.supports_thinking;
  return /^(o\d|gpt-([5-9]|\d{2}))/.test(id) && !/-chat/.test(id);
}
