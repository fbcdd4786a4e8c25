export { harnessFunctions, type HarnessFunctionId } from './functions.js';
export { messagesDefinitions } from './messages.js';
export { ref, root, type FunctionContract, type Schema } from './schema.js';
export { harnessTriggerTypes } from './triggers.js';
