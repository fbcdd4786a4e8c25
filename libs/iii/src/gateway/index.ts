import { HarnessError } from '#libs/contracts';
import type { LocalEngine } from '../local/engine.js';
import type { Gateway } from './gateway.js';
import { DEFAULT_LIMITS, type GatewayLimits } from './limits.js';
import { DEFAULT_PORT, type GatewaySettings } from './settings.js';

export type { Gateway } from './gateway.js';
export type { GatewayLimits } from './limits.js';
export { type GatewaySettings, gatewaySettings } from './settings.js';

/**
 * Starts a gateway; what it takes is loaded only now. The default port being busy makes it take a free one, any other
 * trouble with the port is thrown as `gateway/port_unavailable`.
 */
export async function startGateway(engine: LocalEngine, settings: GatewaySettings, limits: Partial<GatewayLimits> = {}): Promise<Gateway> {
  const { Gateway } = await import('./gateway.js');
  const listen = (port: number): Promise<Gateway> =>
    Gateway.listen(engine, { ...settings, port, limits: { ...DEFAULT_LIMITS, ...limits } });
  const { host, port } = settings;
  try {
    return await listen(port).catch((error: unknown) => {
      if (settings.any_port && codeOf(error) === 'EADDRINUSE') return listen(0);
      throw error;
    });
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined) throw error;
    const what =
      code === 'EADDRINUSE'
        ? `port ${port} is taken by another program. Choose another one with HARNESS_GATEWAY_PORT (0: any free one), or leave it out: then a free one is taken when ${DEFAULT_PORT} is busy`
        : `the gateway cannot listen on ${host}, port ${port} (${code}). Choose others with HARNESS_GATEWAY_HOST and HARNESS_GATEWAY_PORT`;
    throw new HarnessError('gateway/port_unavailable', what, { cause: error });
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;
