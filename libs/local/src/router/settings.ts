import { pause } from '#libs/contracts';

/** What the configuration says of one provider. */
export interface ProviderSettings {
  /** A secret: never log it, never put it into an error. */
  api_key?: string | null;
  api_url?: string | null;
  /** Output tokens of a request that names no limit. */
  max_tokens?: number | null;
  system_prompt?: string | null;
}

/** Sends models whose id matches `pattern` (`*` stands for any run of characters) to `provider`. */
export interface RoutingHeuristic {
  pattern: string;
  provider: string;
}

/** Limits of a chat. All `_ms` are milliseconds. */
export interface RouterLimits {
  /** How long a chat may take in all, with its retries and the pauses between them. */
  stream_timeout_ms: number;
  /** How long a provider may send nothing but pings. */
  idle_timeout_ms: number;
  /** The same before its first frame; null = `idle_timeout_ms`. */
  first_byte_timeout_ms: number | null;
  /** Further tries after the first one. */
  retry_max: number;
  /** The longest pause before the first further try; it doubles with each. */
  retry_base_ms: number;
  retry_cap_ms: number;
  /** A provider that asks to wait longer than this is not waited for. */
  retry_after_cap_ms: number;
  /** Output tokens of a request when neither it nor the provider's settings name a limit. */
  output_token_max: number;
}

/** The configuration of the router (entry `llm-router`). */
export interface RouterSettings {
  /** Takes models that nobody else claims; null = none. */
  default_provider: string | null;
  providers: { [id: string]: ProviderSettings };
  /** Tried in order for models that the catalog does not know. */
  routing_heuristics: RoutingHeuristic[];
  settings: RouterLimits;
}

/** Reads the settings in force; each chat reads them once, at its start. */
export interface RouterSettingsSource {
  current(): RouterSettings;
  /** Stores a renewed credential (null forgets it). Without this the router keeps it for the life of the process. */
  saveCredential?(provider: string, credential: string | null): Promise<void>;
}
/** Injection token of the `RouterSettingsSource`; without a binding the defaults apply. */
export const ROUTER_SETTINGS = Symbol('router:settings');

/** Injection token of the environment that credentials and base URLs are read from; `process.env` without a binding. */
export const ROUTER_ENV = Symbol('router:env');
/** Environment variables by name. */
export type Environment = { readonly [name: string]: string | undefined };

/** What holds where the configuration says nothing. */
export const defaultRouterSettings: RouterSettings = {
  default_provider: null,
  providers: {},
  routing_heuristics: [
    { pattern: 'claude*', provider: 'anthropic' },
    { pattern: 'gpt*', provider: 'openai' },
    { pattern: 'o1*', provider: 'openai' },
    { pattern: 'o3*', provider: 'openai' },
    { pattern: 'o4*', provider: 'openai' },
    { pattern: 'demo*', provider: 'demo' },
  ],
  settings: {
    stream_timeout_ms: 300_000,
    idle_timeout_ms: 120_000,
    first_byte_timeout_ms: null,
    retry_max: 2,
    retry_base_ms: 500,
    retry_cap_ms: 8_000,
    retry_after_cap_ms: 30_000,
    output_token_max: 32_000,
  },
};

/** Time and chance of the retries, so that tests can hold them. */
export interface RetryTiming {
  /** Waits `ms`, or until `signal` is aborted. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** A number from 0 up to 1, without 1. */
  random(): number;
}
/** Injection token of the `RetryTiming`; without a binding real time and chance. */
export const ROUTER_TIMING = Symbol('router:timing');

/** Real time and chance. */
export const systemTiming: RetryTiming = {
  random: Math.random,
  sleep: (ms, signal) => pause(ms, signal),
};
