export { AnthropicProvider, AnthropicProviderModule } from './anthropic/module.js';
