export { StateModule } from './state.module.js';
export { StateError, type StateCode } from './errors.js';
export { StateStore, type StateChange } from './state-store.js';
