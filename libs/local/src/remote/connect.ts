import { connectSdk, type SdkBus } from '#libs/iii';
import type { OpenRuntimeOptions } from '../runtime/api.js';

/** Connects this process to a gateway or an engine; what the SDK has to say is for `debug`. Throws `harness/unreachable`. */
export async function connect(url: string, token: string | undefined, log: OpenRuntimeOptions['log']): Promise<SdkBus> {
  return await connectSdk(url, {
    name: `harness-cli:${process.pid}`,
    ...(token === undefined ? {} : { token }),
    log: (level, message) => log?.('debug', `${level}: ${message}`, {}),
  });
}
