export { RouterEvents } from './events.js';
export { ProviderRegistry } from './providers.js';
export { RouterModule } from './router.module.js';
