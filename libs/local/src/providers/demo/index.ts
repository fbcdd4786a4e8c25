export { DemoProviderModule } from './demo.module.js';
export { DemoProvider } from './demo.provider.js';
