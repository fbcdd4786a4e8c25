import type {
  AgentFunction,
  AgentMessage,
  AssistantMessage,
  ErrorKind,
  JsonObject,
  JsonValue,
  StopReason,
  ThinkingLevel,
  Usage,
} from './messages.js';

/** A reference to one end of a channel; it can travel inside any payload. */
export interface StreamChannelRef {
  channel_id: string;
  access_key: string;
  direction: 'read' | 'write';
}

/** `{type: "json"}` asks for JSON output, with `schema` for output that meets it. */
export interface ResponseFormat {
  type: 'json';
  schema?: JsonValue;
}

/** A part of a system prompt; a provider that keeps a cache may cut it after one with `cache_boundary`. */
export interface SystemSection {
  text: string;
  cache_boundary: boolean;
}

/** Request of `router::chat`; frames go to `writer_ref`. */
export interface ChatRequest {
  writer_ref: StreamChannelRef;
  model: string;
  messages: AgentMessage[];
  provider?: string | null;
  request_id?: string | null;
  session_id?: string | null;
  system_prompt?: string | null;
  /** The system prompt in parts, which together are `system_prompt`. */
  system_sections?: SystemSection[] | null;
  tools?: AgentFunction[] | null;
  response_format?: ResponseFormat | null;
  thinking_level?: ThinkingLevel | null;
  max_output_tokens?: number | null;
  /** Keyed by provider id; only the routed provider's slice is forwarded. */
  provider_options?: { [provider: string]: JsonObject } | null;
  metadata?: JsonValue;
}
export interface RouterErrorShape {
  code: string;
  message: string;
  kind?: ErrorKind;
  retryable?: boolean;
}
export interface ChatResponse {
  ok: boolean;
  provider: string;
  model: string;
  stop_reason?: StopReason | null;
  usage?: Usage | null;
  error?: RouterErrorShape | null;
}

/** Request of `provider::<id>::stream`. */
export interface ProviderStreamRequest {
  writer_ref: StreamChannelRef;
  model: string;
  messages: AgentMessage[];
  /** Requests of one session begin alike, which a provider with a cache can make use of. */
  session_id?: string | null;
  system_prompt?: string | null;
  system_sections?: SystemSection[] | null;
  tools?: AgentFunction[] | null;
  response_format?: ResponseFormat | null;
  thinking_level?: ThinkingLevel | null;
  max_output_tokens?: number | null;
  provider_options?: JsonObject | null;
  model_meta?: Model | null;
  resolution_key?: string | null;
}

/**
 * The frames of a stream, one JSON message each. Every stream ends with exactly one `done` or `error`.
 * `partial` is the message so far; our own providers send it at block boundaries only, a reader accepts it anywhere.
 */
export type StreamFrame =
  | { type: 'start'; partial?: AssistantMessage }
  | { type: 'text_start' | 'text_end' | 'thinking_start' | 'thinking_end' | 'functioncall_end'; partial?: AssistantMessage }
  | { type: 'functioncall_start'; id?: string; partial?: AssistantMessage }
  | { type: 'text_delta' | 'thinking_delta'; delta: string; partial?: AssistantMessage }
  | { type: 'functioncall_delta'; delta: string; id?: string; partial?: AssistantMessage }
  | { type: 'usage'; usage: Usage }
  | { type: 'ping' }
  | { type: 'stop'; stop_reason: StopReason; error_message?: string | null; error_kind?: ErrorKind | null }
  | { type: 'done'; message: AssistantMessage }
  /** `retry_after_ms`: how long the vendor asks to wait before another try, when it says so. */
  | { type: 'error'; error: AssistantMessage; retry_after_ms?: number };

/** Prices in US dollars per million tokens. */
export interface Pricing {
  input: number;
  output: number;
  cache_read?: number;
  cache_write?: number;
}
/** A row of the model catalog. A model that the catalog does not know is treated as able. */
export interface Model {
  id: string;
  provider: string;
  context_window: number;
  max_output_tokens: number;
  display_name?: string;
  input_limit?: number;
  pricing?: Pricing;
  supports_tools?: boolean;
  supports_vision?: boolean;
  supports_cache?: boolean;
  supports_structured_output?: boolean;
  supports_thinking?: boolean;
  supports_xhigh?: boolean;
  thinking_budgets?: { [level: string]: number };
  reasoning_efforts?: { effort: string; description?: string }[];
}
export interface ProviderInfo {
  id: string;
  display_name: string;
  configured: boolean;
  available: boolean;
  supports_model_listing: boolean;
  credential_env_var?: string;
}
/** Request of `router::provider::register`. */
export interface ProviderRegistration {
  id: string;
  display_name?: string;
  credential_env_var?: string;
  defaults?: { api_url?: string; max_tokens?: number };
  supports_model_listing?: boolean;
  models?: Model[];
  worker_id?: string;
  token?: string;
}
/** Answer of `router::provider::resolve`. The credential is a secret: never log or store it. */
export interface ProviderResolution {
  configured: boolean;
  source: 'config' | 'env' | 'none';
  credential: string | null;
  api_url?: string;
  max_tokens?: number;
}
