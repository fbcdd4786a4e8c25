export * from './api.js';
export { openRuntime } from './open.js';
export { closeStore, openStore } from './store.js';
export type { Vitals } from './vitals.js';
