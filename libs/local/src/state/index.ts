export { StateModule } from './state.module.js';
export { StateStore } from './state-store.js';
