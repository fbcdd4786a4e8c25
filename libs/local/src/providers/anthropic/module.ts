import { vendorWorker } from '../shared/module.js';
import { ANTHROPIC } from './vendor.js';

/** Anthropic as a provider: `provider::anthropic::*`. */
export const { Provider: AnthropicProvider, ProviderModule: AnthropicProviderModule } = vendorWorker(ANTHROPIC, {
  stream: 'Streams one answer of an Anthropic model into a channel, as frames.',
  refresh_models: 'Asks Anthropic which models there are and gives the list to the router.',
});
