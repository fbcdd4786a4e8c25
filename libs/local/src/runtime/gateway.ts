import { type Gateway, type GatewaySettings, type LocalEngine, startGateway } from '#libs/iii';
import type { OpenRuntimeOptions } from './api.js';
import type { Store } from './store.js';

/** Starts the gateway that a process asked for, and says where it is, also to other processes on the folder. */
export async function openGateway(
  engine: LocalEngine,
  store: Store,
  settings: GatewaySettings,
  log: NonNullable<OpenRuntimeOptions['log']>,
): Promise<Gateway> {
  const gateway = await startGateway(engine, settings);
  if (settings.port !== 0 && !gateway.url.endsWith(`:${settings.port}`)) {
    log('warn', `port ${settings.port} is taken, so the gateway is on a free one`, { gateway: gateway.url });
  }
  store.delivery.expectConsumers();
  store.processes.announce({ url: gateway.url, needs_token: settings.token !== null });
  return gateway;
}
