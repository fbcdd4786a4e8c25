/** Any JSON value. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

/** Why a generation ended. */
export type StopReason = 'end' | 'length' | 'function_call' | 'aborted' | 'error';
/** What kind of provider failure it was; `rate_limited` and `transient` may be retried. */
export type ErrorKind = 'auth_expired' | 'rate_limited' | 'context_overflow' | 'transient' | 'permanent';
/** How much a model may think. */
export type ThinkingLevel = 'minimal' | 'low' | 'medium' | 'high' | 'xhigh';

/** Token and cost accounting of one generation. Tokens are counts, `cost_usd` is US dollars. */
export interface Usage {
  input?: number | null;
  output?: number | null;
  cache_read?: number | null;
  cache_write?: number | null;
  reasoning?: number | null;
  cost_usd?: number | null;
}

export interface TextBlock {
  type: 'text';
  text: string;
}
/** `data` is base64. */
export interface ImageBlock {
  type: 'image';
  data: string;
  mime: string;
}
export interface ThinkingBlock {
  type: 'thinking';
  text: string;
  signature?: string | null;
}
/** Opaque thinking that only its provider can read; it goes back byte for byte or not at all. */
export interface RedactedThinkingBlock {
  type: 'redacted_thinking';
  data: string;
}
export interface FunctionCallBlock {
  type: 'function_call';
  id: string;
  function_id: string;
  arguments: JsonValue;
}
export interface FunctionResultBlock {
  type: 'function_result';
  function_call_id: string;
  content: ContentBlock[];
  is_error?: boolean | null;
}
export type ContentBlock = TextBlock | ImageBlock | ThinkingBlock | RedactedThinkingBlock | FunctionCallBlock | FunctionResultBlock;

/** `timestamp` is ms since the epoch, here and in the other roles. */
export interface UserMessage {
  role: 'user';
  content: ContentBlock[];
  timestamp: number;
}
export interface AssistantMessage {
  role: 'assistant';
  content: ContentBlock[];
  model: string;
  provider: string;
  stop_reason: StopReason;
  timestamp: number;
  usage?: Usage | null;
  error_kind?: ErrorKind | null;
  error_message?: string | null;
  native_stop_reason?: string | null;
  warnings?: string[] | null;
}
export interface FunctionResultMessage {
  role: 'function_result';
  function_call_id: string;
  function_id: string;
  content: ContentBlock[];
  details: JsonValue;
  is_error: boolean;
  timestamp: number;
}
export interface CustomMessage {
  role: 'custom';
  custom_type: string;
  content: ContentBlock[];
  details?: JsonValue;
  display?: string | null;
  timestamp: number;
}
export type AgentMessage = UserMessage | AssistantMessage | FunctionResultMessage | CustomMessage;
export type Role = AgentMessage['role'];

/** One function as a model sees it. `parameters` is a JSON Schema. */
export interface AgentFunction {
  name: string;
  description: string;
  parameters: JsonValue;
  label?: string;
  execution_mode?: 'parallel' | 'sequential';
}

/** The text of all text blocks, joined. */
export const textOf = (content: readonly ContentBlock[]): string =>
  content.reduce((all, block) => (block.type === 'text' ? all + block.text : all), '');

/** The calls of a message, in content order. */
export const callsOf = (content: readonly ContentBlock[]): FunctionCallBlock[] =>
  content.filter((block): block is FunctionCallBlock => block.type === 'function_call');
