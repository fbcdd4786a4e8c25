import type { SdkBus } from './bus.js';
import type { SdkLog } from './log.js';

export interface ConnectOptions {
  /** Under what name this worker is listed. */
  name: string;
  /** What the engine or gateway wants to be shown. */
  token?: string;
  /** Told what the SDK would print. */
  log?: SdkLog;
}

/**
 * Connects to the engine or gateway at a WebSocket address by iii-sdk, which is loaded only now. From then on the SDK keeps
 * the connection by itself. Throws `harness/unreachable`, with the reason, when nobody takes the first connection.
 */
export async function connectSdk(url: string, options: ConnectOptions): Promise<SdkBus> {
  const { dial } = await import('./dial.js');
  return await dial(url, options);
}
