export { LISTED_ALLOWS, type PromptRuntime } from './runtime.js';
export { compactionPrompt, withSummary } from './summary.js';
export { buildSystemPrompt, type SystemPromptInput } from './system-prompt.js';
