import { connectSdk } from '#libs/iii';
import type { OpenRuntimeOptions } from '../runtime/api.js';
import { RemoteRuntime } from './runtime.js';

export interface OpenRemoteOptions {
  /** WebSocket address of a gateway or an iii engine. */
  url: string;
  /** What the gateway wants to be shown. */
  token?: string | undefined;
  log?: OpenRuntimeOptions['log'];
}

/** Connects to a harness that runs somewhere else. Throws `harness/unreachable`, with the reason. */
export async function openRemote({ url, token, log }: OpenRemoteOptions): Promise<RemoteRuntime> {
  const bus = await connectSdk(url, {
    name: `harness-cli:${process.pid}`,
    ...(token === undefined ? {} : { token }),
    log: (level, message) => log?.(level === 'error' ? 'warn' : level, message, {}),
  });
  try {
    return await RemoteRuntime.over(bus, url);
  } catch (error) {
    await bus.close();
    throw error;
  }
}
