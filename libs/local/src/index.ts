export { checkConfiguration } from './configuration/check.js';
export { openOnEngine } from './engine/open.js';
export { openRemote } from './remote/open.js';
export * from './runtime/index.js';
export { SecretFilter } from './secrets/filter.js';
export { checkPages, DATABASE_FILE } from './sqlite/index.js';
export type { TurnSpan, TurnSpans } from './traces/index.js';
