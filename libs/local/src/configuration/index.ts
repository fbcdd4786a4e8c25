export * from './configuration.module.js';
export { type ConfigurationFault, describeFault } from './fault.js';
export { LiveConfiguration } from './live.js';
export { type Configuration, loadConfiguration } from './load.js';
export { ConfigurationWatch } from './watch.js';
