export { StateModule } from './state.module.js';
