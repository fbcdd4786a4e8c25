import { registerWorker } from 'iii-sdk';
import { WebSocket } from 'ws';
import { HarnessError } from '#libs/contracts';
import { SdkBus } from './bus.js';
import type { ConnectOptions } from './connect.js';
import { captureSdkLog } from './log.js';

const HANDSHAKE_MS = 10_000;

/** See `connectSdk`. */
export async function dial(url: string, { name, token, log }: ConnectOptions): Promise<SdkBus> {
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  await probe(url, headers);
  captureSdkLog(log ?? (() => undefined));
  const client = registerWorker(url, { workerName: name, headers, enableMetricsReporting: false, otel: { enabled: false } });
  return new SdkBus(client, url);
}

/** Opens and closes a socket, since the SDK tries for ever and does not say why it fails. */
function probe(url: string, headers: { [name: string]: string } | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers, handshakeTimeout: HANDSHAKE_MS });
    socket.once('open', () => {
      socket.close(1000);
      resolve();
    });
    socket.once('error', (error) => reject(new HarnessError('harness/unreachable', `${url}: ${error.message}`, { cause: error })));
  });
}
