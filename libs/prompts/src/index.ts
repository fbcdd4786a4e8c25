export { LISTED_ALLOWS, type PromptRuntime } from './runtime.js';
export { buildSystemPrompt, type SystemPromptInput } from './system-prompt.js';
