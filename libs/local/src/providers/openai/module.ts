import { vendorWorker } from '../shared/module.js';
import { OPENAI } from './vendor.js';

/** OpenAI, and servers that speak its format, as a provider: `provider::openai::*`. */
export const { Provider: OpenAiProvider, ProviderModule: OpenAiProviderModule } = vendorWorker(OPENAI, {
  stream: 'Streams one answer of an OpenAI model, or of a server that speaks its format, into a channel, as frames.',
  refresh_models: 'Asks OpenAI, or the server at its address, which models there are and gives the list to the router.',
});
