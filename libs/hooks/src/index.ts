export { type ChainOutcome, runChain } from './chain.js';
export { HooksModule } from './hooks.module.js';
export { HookRegistry } from './registry.js';
