import type { Usage } from '#libs/contracts';
import type { TurnTotals } from '../ports/feed.js';

/** The sums of a turn that has used nothing. */
export const noUsage: TurnTotals = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: null };

/** Adds the usage of one generation to the sums of its turn. */
export function addUsage(totals: TurnTotals, usage: Usage | null): TurnTotals {
  if (usage === null) return totals;
  const cost = usage.cost_usd ?? null;
  return {
    input_tokens: totals.input_tokens + (usage.input ?? 0),
    output_tokens: totals.output_tokens + (usage.output ?? 0),
    cache_read_tokens: totals.cache_read_tokens + (usage.cache_read ?? 0),
    cache_write_tokens: totals.cache_write_tokens + (usage.cache_write ?? 0),
    cost_usd: cost === null ? totals.cost_usd : (totals.cost_usd ?? 0) + cost,
  };
}
