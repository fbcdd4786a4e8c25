import type { IncomingMessage } from 'node:http';
import { registerWorker } from 'iii-sdk';
import { WebSocket } from 'ws';
import { errorMessage, HarnessError, withoutPassword } from '#libs/contracts';
import { SdkBus } from './bus.js';
import type { ConnectOptions } from './connect.js';
import { watchConnection } from './connection.js';
import { captureSdkLog } from './log.js';
import { repeatQuickResults } from './results.js';
import { SdkTrace } from './trace.js';

const HANDSHAKE_MS = 10_000;
/** How long the SDK waits before it connects anew, in ms: at first, and at most. */
const RECONNECT_MS = 200;
const RECONNECT_CAP_MS = 2_000;

/** See `connectSdk`. */
export async function dial(url: string, { name, token, log }: ConnectOptions): Promise<SdkBus> {
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  await probe(url, headers);
  captureSdkLog(log ?? (() => undefined));
  const client = registerWorker(url, {
    workerName: name,
    headers,
    enableMetricsReporting: false,
    otel: { enabled: false },
    reconnectionConfig: { initialDelayMs: RECONNECT_MS, maxDelayMs: RECONNECT_CAP_MS },
  });
  repeatQuickResults(client);
  return new SdkBus(client, url, watchConnection(client), name, new SdkTrace(client));
}

/** Opens and closes a socket, since the SDK tries for ever and does not say why it fails. */
function probe(url: string, headers: { [name: string]: string } | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers, handshakeTimeout: HANDSHAKE_MS });
    socket.once('open', () => {
      socket.close(1000);
      resolve();
    });
    const fail = (why: string, cause?: unknown): void =>
      reject(new HarnessError('harness/unreachable', `${withoutPassword(url)}: ${why}`, { cause }));
    socket.once('error', (error) => fail(error.message, error));
    socket.once('unexpected-response', (_, response) => {
      reasonOf(response).then(
        (reason) => fail(`${response.statusCode ?? 'an answer that is none'}${reason === '' ? '' : `, ${reason}`}`),
        (error: unknown) => fail(errorMessage(error), error),
      );
    });
  });
}

/** Most of a refusal's text that is shown, in characters. */
const REASON_CHARS = 200;

/** What a server says of why it opens no WebSocket. */
async function reasonOf(response: IncomingMessage): Promise<string> {
  response.setEncoding('utf8');
  response.setTimeout(HANDSHAKE_MS, () => response.destroy());
  let said = '';
  for await (const part of response) {
    said += String(part);
    if (said.length > REASON_CHARS) break;
  }
  return said.trim().slice(0, REASON_CHARS);
}
