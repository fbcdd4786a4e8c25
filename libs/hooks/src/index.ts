export { type HookBinding, isGuard } from './binding.js';
export { type ChainOutcome, runChain } from './chain.js';
export { HooksModule } from './hooks.module.js';
export { COMPILE_GLOBS, type CompileGlobs, HookRegistry } from './registry.js';
