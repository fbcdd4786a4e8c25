export { type HarnessFunctionId, harnessFunctions } from './functions.js';
export { messagesDefinitions } from './messages.js';
export { type FunctionContract, ref, root, type Schema } from './schema.js';
export { harnessTriggerTypes } from './triggers.js';
