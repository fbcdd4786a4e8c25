export * from './configuration.module.js';
export { ownDefinitions } from './definitions.js';
export { type ConfigurationFault, describeFault } from './fault.js';
export { LiveConfiguration, valuesOf } from './live.js';
export { loadConfiguration } from './load.js';
export { ConfigurationWatch } from './watch.js';
