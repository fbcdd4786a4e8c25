import type Anthropic from '@anthropic-ai/sdk';
import type { ThinkingLevel } from '#libs/contracts';
import type { Turn } from '../shared/history.js';
import type { VendorRun } from '../shared/provider.js';
import { bindsThinking, THINKING_BUDGETS, thinksByBudget } from './models.js';

const MIN_BUDGET = 1_024;
/** What a thinking budget leaves of the output limit for the answer. */
const ANSWER_ROOM = 1_024;

/** Allows a request to say what becomes of thinking whose conversation has changed since. */
export const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Drops such thinking instead of refusing the request: compaction and a changed set of functions must not end a session. */
const BINDING = { block_binding: { prefix_mismatch_behavior: 'drop_block' } };

/** How the model is asked to think, and how hard. */
export interface Thinking {
  config: object;
  effort?: string;
}

/** True when a request sends thinking back to a model that checks what stood before it. */
export const holdsBoundThinking = (model: string, turns: readonly Turn[]): boolean =>
  bindsThinking(model) && turns.some((turn) => turn.role === 'assistant' && turn.parts.some(isThinking));

/** How the model is asked to think; undefined leaves it to the model. `bound`: the request sends back thinking that is checked. */
export function thinkingOf(run: VendorRun, turns: readonly Turn[], maxTokens: number, bound: boolean): Thinking | undefined {
  const { request, model, draft } = run;
  const level = request.thinking_level;
  if (!level || model?.supports_thinking === false)
    return bound ? { config: withBinding(request.provider_options?.['thinking']) } : undefined;
  if (!thinksByBudget(request.model, model)) {
    const config: Anthropic.ThinkingConfigAdaptive = { type: 'adaptive', display: 'summarized' };
    return { config: bound ? { ...config, ...BINDING } : config, effort: effortOf(level, model?.reasoning_efforts, model?.supports_xhigh) };
  }
  if (!mayThinkByBudget(turns)) {
    draft.warnings.push('thinking is off for this request: the unfinished turn has calls without the thinking that led to them');
    return undefined;
  }
  const wanted = model?.thinking_budgets?.[level] ?? THINKING_BUDGETS[level];
  const budget_tokens = Math.min(wanted, maxTokens - ANSWER_ROOM);
  if (budget_tokens < MIN_BUDGET) return undefined;
  const config: Anthropic.ThinkingConfigEnabled = { type: 'enabled', budget_tokens };
  return { config };
}

/** The caller's own setting with the binding added where it has room for it. */
function withBinding(own: unknown): object {
  if (typeof own !== 'object' || own === null) return { type: 'adaptive', ...BINDING };
  const { type } = own as { type?: unknown };
  return type === 'adaptive' || type === 'enabled' ? { ...BINDING, ...own } : own;
}

/** Thinking by budget is refused when the assistant's last message, whose calls are answered now, does not begin with thinking. */
function mayThinkByBudget(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  if (last?.role !== 'user' || last.results.length === 0) return true;
  const before = turns.at(-2);
  return before?.role === 'assistant' && before.parts[0] !== undefined && isThinking(before.parts[0]);
}

const isThinking = (part: { type: string }): boolean => part.type === 'thinking' || part.type === 'redacted_thinking';

function effortOf(level: ThinkingLevel, known: { effort: string }[] | undefined, supportsXhigh: boolean | undefined): string {
  const wanted = level === 'minimal' ? 'low' : level;
  if (wanted !== 'xhigh') return wanted;
  if (known !== undefined) return ['xhigh', 'max', 'high'].find((effort) => known.some((one) => one.effort === effort)) ?? 'high';
  return supportsXhigh === false ? 'high' : 'xhigh';
}
