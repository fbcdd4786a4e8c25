import type { Limits } from '../machine/decision.js';

/** What a decision needs of the settings in force. */
export const limitsOf = (settings: Limits): Limits => ({
  step_max_retries: settings.step_max_retries,
  step_backoff_ms: settings.step_backoff_ms,
  max_transient_resumes: settings.max_transient_resumes,
  max_validation_retries: settings.max_validation_retries,
});
