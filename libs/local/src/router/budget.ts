import type { Model } from '#libs/contracts';

/**
 * The output tokens that a chat may use: what the request asks for, else the provider's setting, else the model's own limit up
 * to the router's maximum; never more than the model can. Null when nothing is known: the provider decides.
 */
export function outputBudget(
  model: Model | undefined,
  requested: number | null | undefined,
  configured: number | undefined,
  max: number,
): number | null {
  const limit = model !== undefined && model.max_output_tokens > 0 ? model.max_output_tokens : undefined;
  const wanted = requested ?? configured ?? (limit === undefined ? undefined : Math.min(limit, max));
  if (wanted === undefined) return null;
  return limit === undefined ? wanted : Math.min(wanted, limit);
}
