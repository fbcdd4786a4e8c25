import { errorMessage } from '#libs/contracts';
import type { SdkBus } from '#libs/iii';
import type { ProcessRegistry } from '../processes/registry.js';
import type { OpenRuntimeOptions } from '../runtime/api.js';
import { connect } from './connect.js';

const WITHOUT = 'this process does without what other programs have connected to it';

/**
 * Connects to the worker that serves a folder on this host; null when there is none with a gateway, or when it cannot be
 * reached, which is told.
 */
export async function connectToWorker(
  processes: ProcessRegistry,
  token: string | undefined,
  log: NonNullable<OpenRuntimeOptions['log']>,
): Promise<SdkBus | null> {
  const gateway = processes.gatewayHere(Date.now());
  if (gateway === null) return null;
  if (gateway.needs_token && token === undefined) {
    log('warn', `the worker that serves this folder wants to be shown HARNESS_GATEWAY_TOKEN, which is not set: ${WITHOUT}`, {});
    return null;
  }
  try {
    return await connect(gateway.url, token, log);
  } catch (error) {
    log('warn', `the worker that serves this folder cannot be reached: ${WITHOUT}`, { error: errorMessage(error) });
    return null;
  }
}
