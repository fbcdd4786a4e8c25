import type { INestApplicationContext, Type } from '@nestjs/common';
import type { Bus } from '#libs/iii';
import { DemoProvider, DemoProviderModule } from '../providers/demo/index.js';
import { AnthropicProvider, AnthropicProviderModule, OpenAiProvider, OpenAiProviderModule } from '../providers/index.js';
import type { ProviderAdapter } from '../providers/shared/adapter.js';
import { RouterEvents } from '../router/index.js';

/** The modules of the model providers that come with the runtime. */
export const PROVIDER_MODULES: Type[] = [AnthropicProviderModule, OpenAiProviderModule, DemoProviderModule];
const ADAPTERS: Type<ProviderAdapter>[] = [AnthropicProvider, OpenAiProvider, DemoProvider];

/** Id of the function that a router in another process calls when it is ready. */
const ANNOUNCE = 'provider::announce';

/** Makes our providers known to the router: to our own at once, to one in another process whenever it says that it is ready. */
export async function announceProviders(app: INestApplicationContext, bus: Bus, isRouterOurs: boolean): Promise<void> {
  const announce = async (): Promise<null> => {
    for (const type of ADAPTERS) await app.get<ProviderAdapter>(type, { strict: false }).register(bus);
    return null;
  };
  if (isRouterOurs) {
    await announce();
    app.get(RouterEvents, { strict: false }).announceReady();
    return;
  }
  bus.registerFunction({ id: ANNOUNCE, description: 'Tells a router of the built-in providers.', metadata: { internal: true } }, announce);
  bus.registerTrigger({ type: 'router::ready', function_id: ANNOUNCE, config: {} });
}
