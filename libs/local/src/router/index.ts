export { RouterEvents } from './events.js';
export { RouterModule } from './router.module.js';
export {
  defaultRouterSettings,
  ROUTER_ENV,
  ROUTER_SETTINGS,
  type RouterLimits,
  type RouterSettings,
  type RouterSettingsSource,
} from './settings.js';
