export { checkConfiguration } from './configuration/check.js';
export { type OpenRemoteOptions, openRemote } from './remote/open.js';
export * from './runtime/index.js';
export { DATABASE_FILE } from './sqlite/index.js';
