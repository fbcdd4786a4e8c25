export { AnthropicProvider, AnthropicProviderModule } from './anthropic/module.js';
export { OpenAiProvider, OpenAiProviderModule } from './openai/module.js';
