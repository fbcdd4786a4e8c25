export { checkConfiguration } from './configuration/check.js';
export * from './runtime/index.js';
export { DATABASE_FILE } from './sqlite/index.js';
