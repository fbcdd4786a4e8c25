import { type IIIClient, type InitOptions, registerWorker } from 'iii-sdk';
import { onTestFinished, vi } from 'vitest';
import { type GatewaySettings, gatewaySettings } from '#libs/iii';
import { TurnRig, type TurnRigOptions } from '../support/turn-rig.js';

/** Settings of a gateway on a free port, without what the environment of the test says. */
export const freePort = (env: NodeJS.ProcessEnv = {}): GatewaySettings => gatewaySettings({ HARNESS_GATEWAY_PORT: '0', ...env });

/** A runtime with a gateway on a free port; it is closed after the test. */
export async function openWithGateway(options: TurnRigOptions = {}): Promise<TurnRig> {
  const rig = await TurnRig.open({ role: 'worker', gateway: freePort(), ...options });
  onTestFinished(async () => await rig.close());
  return rig;
}

export const urlOf = (rig: TurnRig): string => {
  const url = rig.runtime.gatewayUrl;
  if (url === undefined) throw new Error('the runtime has no gateway');
  return url;
};

/** A client of the real SDK, in this process and with its telemetry off; it is shut down after the test. */
export function connect(url: string, options: InitOptions = {}): IIIClient {
  vi.spyOn(console, 'debug').mockReturnValue(undefined); // where the SDK says what it does, and on `error` that a socket is gone
  vi.spyOn(console, 'error').mockReturnValue(undefined);
  const client = registerWorker(url, {
    workerName: 'remote',
    enableMetricsReporting: false,
    otel: { enabled: false },
    reconnectionConfig: { initialDelayMs: 50, maxDelayMs: 200 },
    ...options,
  });
  onTestFinished(async () => await client.shutdown());
  return client;
}

/** Resolves when the gateway has worked through what a client has sent before. */
export const synced = async (client: IIIClient): Promise<void> => {
  await client.trigger({ function_id: 'engine::workers::list', payload: {} });
};
