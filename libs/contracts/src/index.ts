export * from './errors.js';
export * from './harness.js';
export * from './hooks.js';
export * from './ids.js';
export * from './messages.js';
export * from './router.js';
export * from './schemas/index.js';
export * from './sessions.js';
