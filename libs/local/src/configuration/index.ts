export * from './configuration.module.js';
export { describeFault } from './fault.js';
export { LiveConfiguration } from './live.js';
export { loadConfiguration } from './load.js';
export { ConfigurationWatch } from './watch.js';
