export { checkConfiguration } from './configuration/check.js';
export * from './runtime/index.js';
export { DATABASE_FILE, STORE_CODES } from './sqlite/index.js';
