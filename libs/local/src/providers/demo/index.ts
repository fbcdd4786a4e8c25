export { demoHelp } from './agent.js';
export { DemoProviderModule } from './demo.module.js';
export { DemoProvider, demoModels } from './demo.provider.js';
