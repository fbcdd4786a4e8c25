import type { AgentMessage, AssistantMessage, ContentBlock, JsonObject, JsonValue } from './messages.js';

/** The five in-path points, as `HookInput.point` spells them. Trigger types spell them in kebab-case. */
export type HookPoint = 'pre_turn' | 'pre_generate' | 'post_generate' | 'pre_trigger' | 'post_trigger';
export const HOOK_POINTS: readonly HookPoint[] = ['pre_turn', 'pre_generate', 'post_generate', 'pre_trigger', 'post_trigger'];
/** The trigger type of a hook point, e.g. `harness::hook::pre-trigger`. */
export const hookTriggerType = (point: HookPoint): string => `harness::hook::${point.replace('_', '-')}`;

export interface HookTriggerConfig {
  functions?: string[] | null;
  priority?: number | null;
  timeout_ms?: number | null;
  on_error?: string | null;
}
/** What a hook function gets. Exactly one of the last four is there, by `point`; none for `pre_turn`. */
export interface HookInput {
  point: HookPoint;
  session_id: string;
  turn_id: string;
  step: number;
  depth: number;
  metadata?: JsonValue;
  generate?: { system_prompt: string; messages: AgentMessage[]; model: string; provider: string | null };
  generated?: { message: AssistantMessage };
  call?: { id: string; function_id: string; arguments: JsonValue };
  result?: { function_call_id: string; function_id: string; content: ContentBlock[]; is_error: boolean; details: JsonValue };
}
export interface HookMutations {
  system_prompt?: string;
  append_messages?: AgentMessage[];
  arguments?: JsonValue;
  content?: ContentBlock[];
  details?: JsonValue;
  is_error?: boolean;
}
/** What a hook function may answer; nothing means `continue`. */
export type HookOutput =
  | { decision: 'continue'; mutations?: HookMutations; annotations?: JsonObject }
  | { decision: 'deny'; reason: string }
  | { decision: 'hold'; pending_timeout_ms?: number; mutations?: HookMutations };
