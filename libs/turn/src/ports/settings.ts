import type { FunctionPolicyInput } from '#libs/contracts';

/** The configuration of the harness (entry `harness`). All `_ms` are milliseconds. */
export interface HarnessSettings {
  /** Model when a send of the CLI names none. */
  default_model: string | null;
  default_provider: string | null;
  /** Generations of a turn whose send gives no `max_turns`. */
  default_max_turns: number;
  default_pending_timeout_ms: number;
  /** How deep sub-agents may nest. */
  max_depth: number;
  /** How many children a turn may start. */
  max_children: number;
  max_validation_retries: number;
  max_transient_resumes: number;
  /** Bytes of a result that are kept; 0 = no limit, 1 to 1023 count as 1024. */
  max_result_bytes: number;
  prompt_cache_sections: boolean;
  call_reconciliation: 'off' | 'coerce' | 'judge';
  idem_ttl_secs: number;
  session_timeout_ms: number;
  context_timeout_ms: number;
  router_timeout_ms: number;
  dispatch_timeout_ms: number;
  /** Least time between two stored updates of a stream. */
  stream_coalesce_ms: number;
  /** Cron expression of the sweep: sec min hour dom month dow. */
  sweep_expression: string;
  /** Policy of a parentless spawn that gives none; null = deny all. */
  default_functions: FunctionPolicyInput | null;
  /** Root of the file functions; null = the working directory, `off` = none. */
  default_filesystem_root: string | null;
  projects_file_path: string;
  /** Turns that one process runs side by side. */
  concurrency: number;
  /** Tries of a step that fails for a passing reason, and the first pause between them. */
  step_max_retries: number;
  step_backoff_ms: number;
  /** Rows of the never table that the operator lifts. */
  lift_never: string[];
  /** `power`: an answer survives a power cut. `process`: it survives the process. */
  durability: 'power' | 'process';
  /** Traces of turns that are kept; 0 = none. */
  trace_turns: number;
}

/** Reads the settings in force. A turn keeps what it read at its start only for its frozen options. */
export interface SettingsSource {
  current(): HarnessSettings;
  /** Reads the configuration again; the last good one stays when the new one has a fault, which is thrown. */
  reload?(): Promise<void>;
}
/** Injection token of the `SettingsSource`. */
export const SETTINGS = Symbol('harness:settings');

export const defaultSettings: HarnessSettings = {
  default_model: null,
  default_provider: null,
  default_max_turns: 16,
  default_pending_timeout_ms: 1_800_000,
  max_depth: 3,
  max_children: 8,
  max_validation_retries: 2,
  max_transient_resumes: 1,
  max_result_bytes: 262_144,
  prompt_cache_sections: true,
  call_reconciliation: 'judge',
  idem_ttl_secs: 86_400,
  session_timeout_ms: 10_000,
  context_timeout_ms: 320_000,
  router_timeout_ms: 620_000,
  dispatch_timeout_ms: 300_000,
  stream_coalesce_ms: 150,
  sweep_expression: '0 * * * * *',
  default_functions: { allow: ['*'], deny: [] },
  default_filesystem_root: null,
  projects_file_path: 'data/harness-projects.json',
  concurrency: 64,
  step_max_retries: 3,
  step_backoff_ms: 1_000,
  lift_never: [],
  durability: 'power',
  trace_turns: 1_000,
};
