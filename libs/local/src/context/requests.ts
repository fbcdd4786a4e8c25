import { createHash } from 'node:crypto';
import { type AgentFunction, type AgentMessage, HarnessError, type ThinkingLevel, type Usage } from '#libs/contracts';
import { violation } from '#libs/iii';
import type { TokensByRole } from '#libs/turn';
import type { Budget, ModelInput } from './limits.js';
import { messageSchema } from './schemas.js';

/** The options mean what their schemas say; null is the same as absent. */
export interface AssembleOptions {
  allow_compaction?: boolean | null;
  allow_prune?: boolean | null;
  lease_key?: string | null;
  max_result_tokens?: number | null;
  previous_summary?: string | null;
  protected_functions?: string[] | null;
  request_overhead_tokens?: number | null;
  reserved_tokens?: number | null;
  tail_turns?: number | null;
  thinking_level?: ThinkingLevel | null;
}
export interface AssembleRequest {
  model: ModelInput;
  messages?: AgentMessage[] | null;
  system_prompt?: string | null;
  tools?: AgentFunction[] | null;
  parts?: { [name: string]: string } | null;
  options?: AssembleOptions | null;
}

/** What was done to make a context fit. Tokens are estimates. */
export interface Applied {
  initial_token_count: number;
  capped_parts: number;
  capped_tokens: number;
  pruned: boolean;
  pruned_tokens: number;
  compacted: boolean;
  summary?: string;
  tail_start_index?: number | null;
  tokens_before?: number;
  summarized_head_tokens?: number;
  /** What the requests for a summary have cost, also when none came of them. */
  summary_usage?: Usage;
}
export interface AssembleResponse {
  system_prompt: string;
  messages: AgentMessage[];
  token_count: number;
  usable: number;
  effective_max_output_tokens: number;
  model_resolved: Budget['resolved'];
  applied: Applied;
  breakdown: {
    by_role: TokensByRole;
    by_part?: { [name: string]: number };
    system_prompt_tokens: number;
    tools_tokens: number;
    estimator: 'tokenizer' | 'heuristic';
  };
}

export interface CompactRequest {
  model: ModelInput;
  messages?: AgentMessage[] | null;
  options?: {
    instructions?: string | null;
    lease_key?: string | null;
    preserve_recent_tokens?: number | null;
    previous_summary?: string | null;
    tail_turns?: number | null;
  } | null;
}
export type CompactResponse =
  | {
      status: 'ok';
      summary: string;
      tail_start_index: number | null;
      tokens_before: number;
      tokens_after: number;
      used_prior_summary: boolean;
    }
  | { status: 'busy' | 'empty' | 'overflow' };

export interface PruneRequest {
  messages?: AgentMessage[] | null;
  model?: ModelInput | null;
  options?: {
    max_output_chars?: number | null;
    min_free_tokens?: number | null;
    protect_recent_tokens?: number | null;
    protected_functions?: string[] | null;
  } | null;
}

export interface CountRequest {
  model: ModelInput;
  messages?: AgentMessage[] | null;
  system_prompt?: string | null;
  tools?: AgentFunction[] | null;
  parts?: { [name: string]: string } | null;
}

/** Messages that were checked and are not checked again: a conversation comes again with every step. */
const checked = new WeakSet<AgentMessage>();

/** The messages of a request. Throws `context/invalid_request` for one that is none. */
export function messagesOf(request: { messages?: AgentMessage[] | null }): AgentMessage[] {
  const messages = request.messages ?? [];
  for (const [index, message] of messages.entries()) {
    if (typeof message === 'object' && message !== null && checked.has(message)) continue;
    const wrong = violation(messageSchema, message);
    if (wrong !== null) throw new HarnessError('context/invalid_request', `messages.${index}: ${wrong}`);
    checked.add(message);
  }
  return messages;
}

/** Names what is summed up when the caller does not. */
export const leaseKeyOf = (key: string | null | undefined, messages: readonly AgentMessage[]): string =>
  key ?? `m_${createHash('sha256').update(JSON.stringify(messages)).digest('hex').slice(0, 32)}`;
