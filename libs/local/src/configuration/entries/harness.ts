import type { FunctionPolicyInput } from '#libs/contracts';
import { defaultSettings, type HarnessSettings } from '#libs/turn';
import { field, flag, listOf, milliseconds, nullable, oneOf, optional, section, text, whole } from '../rules.js';
import { cronExpression, functionGlob } from '../syntax.js';

const TEN_YEARS_MS = 315_360_000_000;
const SMALLEST_RESULT_BYTES = 1_024;

class PolicyFields {
  @optional
  @field(listOf('globs of function ids', functionGlob))
  allow?: string[];

  @optional
  @field(listOf('globs of function ids', functionGlob))
  deny?: string[];

  @optional
  @field(oneOf('agent_trigger', 'native'))
  expose?: 'agent_trigger' | 'native';
}

/** The fields of `harness.yaml`. */
export class HarnessFields implements HarnessSettings {
  @field(nullable(text('the id of a model')))
  default_model = defaultSettings.default_model;

  @field(nullable(text('the id of a provider')))
  default_provider = defaultSettings.default_provider;

  @field(whole(1, 1_000_000))
  default_max_turns = defaultSettings.default_max_turns;

  @field(whole(1, TEN_YEARS_MS))
  default_pending_timeout_ms = defaultSettings.default_pending_timeout_ms;

  @field(whole(0, 100))
  max_depth = defaultSettings.max_depth;

  @field(whole(0, 10_000))
  max_children = defaultSettings.max_children;

  @field(whole(0, 100))
  max_validation_retries = defaultSettings.max_validation_retries;

  @field(whole(0, 100))
  max_transient_resumes = defaultSettings.max_transient_resumes;

  @field(whole(0, 1_073_741_824))
  max_result_bytes = defaultSettings.max_result_bytes;

  @field(flag)
  prompt_cache_sections = defaultSettings.prompt_cache_sections;

  @field(oneOf('off', 'coerce', 'judge'))
  call_reconciliation = defaultSettings.call_reconciliation;

  @field(whole(1, 315_360_000))
  idem_ttl_secs = defaultSettings.idem_ttl_secs;

  @field(milliseconds())
  session_timeout_ms = defaultSettings.session_timeout_ms;

  @field(milliseconds())
  context_timeout_ms = defaultSettings.context_timeout_ms;

  @field(milliseconds())
  router_timeout_ms = defaultSettings.router_timeout_ms;

  @field(milliseconds())
  dispatch_timeout_ms = defaultSettings.dispatch_timeout_ms;

  @field(whole(0, 60_000))
  stream_coalesce_ms = defaultSettings.stream_coalesce_ms;

  @field(cronExpression)
  sweep_expression = defaultSettings.sweep_expression;

  @section(PolicyFields, () => null)
  default_functions: PolicyFields | null = Object.assign(new PolicyFields(), defaultSettings.default_functions);

  @field(nullable(text('a folder or `off`')))
  default_filesystem_root = defaultSettings.default_filesystem_root;

  @field(text('a path'))
  projects_file_path = defaultSettings.projects_file_path;

  @field(whole(1, 10_000))
  concurrency = defaultSettings.concurrency;

  @field(whole(0, 100))
  step_max_retries = defaultSettings.step_max_retries;

  @field(milliseconds(0))
  step_backoff_ms = defaultSettings.step_backoff_ms;

  @field(listOf('globs of function ids', functionGlob))
  lift_never = defaultSettings.lift_never;

  @field(oneOf('power', 'process'))
  durability = defaultSettings.durability;
}

const givenFields = (policy: PolicyFields): FunctionPolicyInput =>
  Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined));

/** The settings that the fields mean. */
export function harnessSettings(fields: HarnessFields): HarnessSettings {
  const { max_result_bytes: bytes, default_functions: policy } = fields;
  return {
    ...fields,
    max_result_bytes: bytes === 0 ? 0 : Math.max(bytes, SMALLEST_RESULT_BYTES),
    default_functions: policy === null ? null : givenFields(policy),
  };
}
