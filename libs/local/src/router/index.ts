export { RouterEvents } from './events.js';
export { RouterModule } from './router.module.js';
