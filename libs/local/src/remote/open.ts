import { HarnessError, withoutPassword } from '#libs/contracts';
import type { OpenRuntimeOptions } from '../runtime/api.js';
import { connect } from './connect.js';
import { RemoteRuntime } from './runtime.js';

/** How long the first answer may take, in ms. */
const ANSWER_MS = 5_000;

interface OpenRemoteOptions {
  /** WebSocket address of a gateway or an iii engine. */
  url: string;
  /** What the gateway wants to be shown. */
  token?: string | undefined;
  log?: OpenRuntimeOptions['log'];
}

/** Connects to a harness that runs somewhere else. Throws `harness/unreachable`, with the reason. */
export async function openRemote({ url, token, log }: OpenRemoteOptions): Promise<RemoteRuntime> {
  const bus = await connect(url, token, log);
  const shown = withoutPassword(url);
  try {
    await bus.trigger({ function_id: 'engine::workers::list', payload: {}, timeoutMs: ANSWER_MS }).catch((error: unknown) => {
      throw new HarnessError('harness/unreachable', `${shown}: it takes connections, and does not answer as an iii engine does`, {
        cause: error,
      });
    });
    return await RemoteRuntime.over(bus, shown);
  } catch (error) {
    await bus.close();
    throw error;
  }
}
