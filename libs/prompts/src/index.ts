export { LISTED_ALLOWS, type PromptRuntime } from './runtime.js';
export { buildSystemPrompt, type SystemPrompt, type SystemPromptInput } from './system-prompt.js';
