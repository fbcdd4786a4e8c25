export * from './configuration.module.js';
export { type ConfigurationFault, describeFault } from './fault.js';
export { type Configuration, loadConfiguration } from './load.js';
