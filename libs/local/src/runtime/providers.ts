import type { INestApplicationContext, Type } from '@nestjs/common';
import { DemoProvider, DemoProviderModule } from '../providers/demo/index.js';
import { AnthropicProvider, AnthropicProviderModule, OpenAiProvider, OpenAiProviderModule } from '../providers/index.js';
import type { ProviderAdapter } from '../providers/shared/adapter.js';

/** The modules of the model providers that come with the runtime. */
export const PROVIDER_MODULES: Type[] = [AnthropicProviderModule, OpenAiProviderModule, DemoProviderModule];
const ADAPTERS: Type<ProviderAdapter>[] = [AnthropicProvider, OpenAiProvider, DemoProvider];

/** The providers of an application, to be made known to the router. */
export const providerAdapters = (app: INestApplicationContext): ProviderAdapter[] =>
  ADAPTERS.map((type) => app.get(type, { strict: false }));
