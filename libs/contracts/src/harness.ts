import type { AgentMessage, ContentBlock, JsonValue, ThinkingLevel } from './messages.js';

/** `completed`, `cancelled` and `failed` are terminal. */
export type TurnStatus = 'running' | 'awaiting_functions' | 'completed' | 'cancelled' | 'failed';
export type ExposeMode = 'agent_trigger' | 'native';
export type Mode = 'plan' | 'ask' | 'agent';
export type SystemPromptStrategy = 'override' | 'enrich';
export type OutputContract = { type: 'text' } | { type: 'json'; schema?: JsonValue };

/** The dispatch policy. Absent on a send, every call is denied. */
export interface FunctionPolicy {
  allow: string[];
  deny: string[];
  expose: ExposeMode;
}
export type FunctionPolicyInput = Partial<FunctionPolicy>;

export interface SendOptions {
  functions?: FunctionPolicyInput | null;
  max_turns?: number | null;
  metadata?: JsonValue;
  mode?: Mode | null;
  output?: OutputContract | null;
  system_prompt?: string | null;
  system_prompt_strategy?: SystemPromptStrategy;
  thinking_level?: ThinkingLevel | null;
}
export interface SendRequest {
  message: string | AgentMessage;
  model: string;
  provider?: string | null;
  session_id?: string | null;
  session?: { title?: string | null; metadata?: JsonValue } | null;
  options?: SendOptions | null;
  idempotency_key?: string | null;
}
export interface SendResponse {
  accepted: boolean;
  session_id: string;
  turn_id: string;
  merged?: boolean | null;
  deduplicated?: boolean | null;
}
export interface TurnStepPayload {
  session_id: string;
  turn_id: string;
  step: number;
}
export interface TurnStepResult {
  session_id: string;
  status: TurnStatus;
  next_step?: number | null;
  skipped?: boolean;
}
export interface ChildRef {
  function_call_id: string;
  session_id: string;
  turn_id: string;
}
export interface StatusReport {
  session_id: string;
  turn_id?: string | null;
  status: TurnStatus;
  step: number;
  turn_count: number;
  max_turns: number;
  depth: number;
  pending_function_calls: string[];
  children: ChildRef[];
  result?: JsonValue;
  result_error?: string | null;
}
export interface StopRequest {
  session_id: string;
  turn_id?: string | null;
}
export interface StopResponse {
  stopping: boolean;
}
export interface SpawnOptions {
  functions?: FunctionPolicyInput | null;
  max_children?: number | null;
  max_turns?: number | null;
  mode?: Mode | null;
  output?: OutputContract | null;
  pending_timeout_ms?: number | null;
  system_prompt?: string | null;
  system_prompt_strategy?: SystemPromptStrategy;
  thinking_level?: ThinkingLevel | null;
}
export interface SpawnRequest {
  task: string | AgentMessage;
  model?: string | null;
  provider?: string | null;
  session_id?: string | null;
  options?: SpawnOptions | null;
}
export interface SpawnResponse {
  child_session_id: string;
  child_turn_id: string;
}
export interface TriggerCall {
  id: string;
  function_id: string;
  arguments: JsonValue;
}
export interface FunctionTriggerRequest {
  session_id: string;
  call: TriggerCall;
}
export interface TriggerResult {
  function_call_id: string;
  function_id: string;
  content: ContentBlock[];
  details: JsonValue;
  is_error: boolean;
  duration_ms: number;
}
export interface TriggerPending {
  function_call_id: string;
  function_id: string;
  pending: boolean;
  pending_timeout_ms?: number | null;
}
export type FunctionTriggerResponse = TriggerResult | TriggerPending;
export interface FunctionResolveRequest {
  session_id: string;
  turn_id: string;
  function_call_id: string;
  action?: string | null;
  content?: ContentBlock[] | null;
  details?: JsonValue;
  is_error?: boolean | null;
}
export interface FunctionResolveResponse {
  resolved: boolean;
  turn_resumed: boolean;
}

/** Who started a child turn. */
export interface ParentRef {
  session_id: string;
  turn_id: string;
  function_call_id: string;
}
/** Payload of `harness::turn-started`. `timestamp` is ms since the epoch. */
export interface TurnStartedEvent {
  session_id: string;
  turn_id: string;
  timestamp: number;
  depth: number;
  message_preview?: string;
  parent?: ParentRef;
}
/** Payload of `harness::turn-completed`. `terminal` is false while more is to come for this session by itself. */
export interface TurnCompletedEvent {
  session_id: string;
  turn_id: string;
  status: TurnStatus;
  timestamp: number;
  depth: number;
  terminal: boolean;
  result?: JsonValue;
  result_error?: string;
  reason?: string;
  parent?: ParentRef;
}
/** Binding filter of the two turn events. */
export interface TurnEventBindingConfig {
  session_id?: string | null;
  parent_session_id?: string | null;
}
