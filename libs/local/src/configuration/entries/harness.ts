import type { FunctionPolicyInput } from '#libs/contracts';
import { defaultSettings, type HarnessSettings } from '#libs/turn';
import { field, flag, listOf, milliseconds, nullable, oneOf, optional, section, text, whole } from '../rules.js';
import { cronExpression, functionGlob } from '../syntax.js';

const TEN_YEARS_MS = 315_360_000_000;
const SMALLEST_RESULT_BYTES = 1_024;

class PolicyFields {
  @optional
  @field(listOf('globs of function ids', functionGlob), 'Globs of the functions that may be called.')
  allow?: string[];

  @optional
  @field(listOf('globs of function ids', functionGlob), 'Globs of the functions that may not be called, whatever `allow` says.')
  deny?: string[];

  @optional
  @field(oneOf('agent_trigger', 'native'), 'How functions are shown to a model: through one `agent_trigger`, or each as a tool.')
  expose?: 'agent_trigger' | 'native';
}

/** The fields of `harness.yaml`. */
export class HarnessFields implements HarnessSettings {
  @field(nullable(text('the id of a model')), 'Model when a send of the command line or a sub-agent names none; null = it has to be named.')
  default_model = defaultSettings.default_model;

  @field(nullable(text('the id of a provider')), 'Provider when they name none; null = the router chooses.')
  default_provider = defaultSettings.default_provider;

  @field(whole(1, 1_000_000), 'Generations that a turn may take when its send does not say.')
  default_max_turns = defaultSettings.default_max_turns;

  @field(whole(1, TEN_YEARS_MS), 'How long a call may stay pending when neither it nor its hold says, in ms.')
  default_pending_timeout_ms = defaultSettings.default_pending_timeout_ms;

  @field(whole(0, 100), 'How deep sub-agents may nest; 0 = none.')
  max_depth = defaultSettings.max_depth;

  @field(whole(0, 10_000), 'How many sub-agents a turn may start.')
  max_children = defaultSettings.max_children;

  @field(whole(0, 100), 'Further tries when an answer does not fit its output contract.')
  max_validation_retries = defaultSettings.max_validation_retries;

  @field(whole(0, 100), 'How often a turn goes on after a stream that broke off for a passing reason.')
  max_transient_resumes = defaultSettings.max_transient_resumes;

  @field(whole(0, 1_073_741_824), 'Bytes of a function result that are kept; 0 = no limit, 1 to 1023 count as 1024.')
  max_result_bytes = defaultSettings.max_result_bytes;

  @field(flag, 'Marks the unchanging part of a request for the cache of the provider.')
  prompt_cache_sections = defaultSettings.prompt_cache_sections;

  @field(
    oneOf('off', 'coerce', 'judge'),
    'What is done about calls whose arguments do not fit: nothing, plain conversions, or also a judge.',
  )
  call_reconciliation = defaultSettings.call_reconciliation;

  @field(whole(1, 315_360_000), 'How long an idempotency key is remembered, in seconds.')
  idem_ttl_secs = defaultSettings.idem_ttl_secs;

  @field(milliseconds(), 'How long a call of the session store may take, in ms.')
  session_timeout_ms = defaultSettings.session_timeout_ms;

  @field(milliseconds(), 'How long putting a context together may take, in ms.')
  context_timeout_ms = defaultSettings.context_timeout_ms;

  @field(milliseconds(), 'How long a generation may take in all, in ms.')
  router_timeout_ms = defaultSettings.router_timeout_ms;

  @field(milliseconds(), 'How long a function that a model calls may take, in ms.')
  dispatch_timeout_ms = defaultSettings.dispatch_timeout_ms;

  @field(whole(0, 60_000), 'Least time between two stored updates of an answer that streams, in ms.')
  stream_coalesce_ms = defaultSettings.stream_coalesce_ms;

  @field(cronExpression, 'When expired pending calls are looked for: second minute hour day-of-month month day-of-week, perhaps year; UTC.')
  sweep_expression = defaultSettings.sweep_expression;

  @section(
    PolicyFields,
    'Policy of a sub-agent that is started without a parent and without one of its own; null = nothing is allowed.',
    () => null,
  )
  default_functions: PolicyFields | null = Object.assign(new PolicyFields(), defaultSettings.default_functions);

  @field(nullable(text('a folder or `off`')), 'Folder of the file functions; null = the working directory, `off` = no file functions.')
  default_filesystem_root = defaultSettings.default_filesystem_root;

  @field(text('a path'), 'Path of the file with the list of projects.')
  projects_file_path = defaultSettings.projects_file_path;

  @field(whole(1, 10_000), 'Turns that one process runs side by side.')
  concurrency = defaultSettings.concurrency;

  @field(whole(0, 100), 'Further tries of a step that fails for a passing reason.')
  step_max_retries = defaultSettings.step_max_retries;

  @field(milliseconds(0), 'Pause before the first of them, in ms; it doubles with each.')
  step_backoff_ms = defaultSettings.step_backoff_ms;

  @field(
    listOf('globs of function ids', functionGlob),
    'Rows of the list of functions that no model reaches which are lifted, word for word.',
  )
  lift_never = defaultSettings.lift_never;

  @field(
    oneOf('power', 'process'),
    'What an answer that was given survives: a power cut, or the end of the process. Changes at the next start.',
  )
  durability = defaultSettings.durability;

  @field(whole(0, 1_000_000), 'Turns whose trace is kept, each with its sub-agents; 0 = none.')
  trace_turns = defaultSettings.trace_turns;
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
