export { ROUTER_CODES } from './errors.js';
export { RouterEvents } from './events.js';
export { ProviderRegistry } from './providers.js';
export { RouterModule } from './router.module.js';
export {
  defaultRouterSettings, ROUTER_ENV, ROUTER_SETTINGS, ROUTER_TIMING, systemTiming,
  type Environment, type ProviderSettings, type RetryTiming, type RouterLimits, type RouterSettings, type RouterSettingsSource, type RoutingHeuristic,
} from './settings.js';
