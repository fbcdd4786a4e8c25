export * from './api.js';
export { openRuntime } from './open.js';
export { closeStore, openStore, type Store, type StoreOptions } from './store.js';
