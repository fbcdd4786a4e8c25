export { isGuard, type HookBinding } from './binding.js';
export { runChain, type ChainOutcome } from './chain.js';
export { HooksModule } from './hooks.module.js';
export { COMPILE_GLOBS, HookRegistry, type CompileGlobs } from './registry.js';
