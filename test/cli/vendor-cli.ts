import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { AgentMessage, MessageItem } from '#libs/contracts';
import { anthropicStream, chatStream, responsesStream, type Said } from '../support/vendor-scripts.js';
import { type SseEvent, VendorServer } from '../support/vendor-server.js';
import { folder, here } from './harness-cli.js';

/** One way in which a vendor is spoken to. */
export interface VendorCase {
  name: string;
  provider: 'anthropic' | 'openai';
  model: string;
  path: string;
  key: string;
  /** The environment of a CLI that reaches the vendor at `server`. */
  environment(server: VendorServer): Promise<NodeJS.ProcessEnv>;
  /** A stream; `cut` leaves out how it ends. */
  events(said: readonly Said[], cut?: boolean): SseEvent[];
  /** A failure that the vendor tells in the middle of a stream. */
  broken: SseEvent;
  /** Tokens of one generation of the scripts, as harness counts them. */
  usage: { input: number; output: number; cache_read?: number };
  /** The body of an error answer. */
  error(type: string, message: string): object;
  /** The header with the key. */
  header: { name: string; value: string };
}

const ANTHROPIC_KEY = 'sk-ant-api03-QmFuYW5hUGFuY2FrZXNXaXRoU3lydXA0Mg';
const OPENAI_KEY = 'sk-proj-V2FmZmxlc1dpdGhDcmVhbUFuZFN1Z2FyMTc';
const openaiError = (code: string, message: string): object => ({ error: { message, type: 'invalid_request_error', param: null, code } });
const bearer = { name: 'authorization', value: `Bearer ${OPENAI_KEY}` };

export const VENDORS: readonly VendorCase[] = [
  {
    name: 'anthropic',
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    path: '/v1/messages',
    key: ANTHROPIC_KEY,
    environment: ({ url }) => Promise.resolve({ ANTHROPIC_API_KEY: ANTHROPIC_KEY, ANTHROPIC_BASE_URL: url }),
    events: (said, cut = false) => anthropicStream(said, { cut, usage: { start: { cache_read_input_tokens: 7 } } }),
    broken: { event: 'error', data: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } },
    usage: { input: 11, output: 42, cache_read: 7 },
    error: (type, message) => ({ type: 'error', error: { type, message } }),
    header: { name: 'x-api-key', value: ANTHROPIC_KEY },
  },
  {
    name: 'openai, chat completions at an address of its own',
    provider: 'openai',
    model: 'gpt-4.1',
    path: '/v1/chat/completions',
    key: OPENAI_KEY,
    environment: ({ url }) => Promise.resolve({ OPENAI_API_KEY: OPENAI_KEY, OPENAI_BASE_URL: `${url}/v1` }),
    events: (said, cut = false) => chatStream(said, cut ? { finish: null } : {}),
    broken: { data: { error: { message: 'Overloaded', code: 502 } } },
    usage: { input: 20, output: 9 },
    error: openaiError,
    header: bearer,
  },
  {
    name: 'openai, responses of a reasoning model',
    provider: 'openai',
    model: 'gpt-5',
    path: '/v1/responses',
    key: OPENAI_KEY,
    environment: async (server) => ({ OPENAI_API_KEY: OPENAI_KEY, ...(await tunnelTo(server)) }),
    events: (said, cut = false) => responsesStream(said, { cut }),
    broken: { event: 'error', data: { type: 'error', code: 'server_error', message: 'Overloaded', param: null } },
    usage: { input: 20, output: 15, cache_read: 10 },
    error: openaiError,
    header: bearer,
  },
];

/** A vendor server that is gone after the test. */
export async function vendorServer(): Promise<VendorServer> {
  const server = await VendorServer.start();
  onTestFinished(() => server.close());
  return server;
}

/**
 * The environment in which `https://api.openai.com` is `server`: a proxy that answers tunnels to that host itself, and a
 * certificate that Node is told to trust.
 */
async function tunnelTo(server: VendorServer): Promise<NodeJS.ProcessEnv> {
  const { cert, key, path } = certificate();
  const proxy = createServer();
  const sockets = new Set<{ destroy(): void }>();
  proxy.on('connect', (request, socket, head) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    if (request.url !== 'api.openai.com:443') {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) socket.unshift(head);
    const plain = new TLSSocket(socket, { isServer: true, cert, key });
    const onward = connect(Number(new URL(server.url).port), '127.0.0.1');
    sockets.add(onward);
    plain.on('error', () => onward.destroy());
    onward.on('error', () => plain.destroy());
    onward.on('close', () => plain.destroy());
    plain.pipe(onward).pipe(plain);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return { HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, NODE_EXTRA_CA_CERTS: path };
}

let made: { cert: Buffer; key: Buffer } | undefined;

/** A certificate of `api.openai.com` by an authority of this test alone, also as a file that is gone after the test. */
function certificate(): { cert: Buffer; key: Buffer; path: string } {
  made ??= makeCertificate();
  const path = join(folder(), 'cert.pem');
  writeFileSync(path, made.cert);
  return { ...made, path };
}

function makeCertificate(): { cert: Buffer; key: Buffer } {
  const [path, keyPath] = [join(folder(), 'cert.pem'), join(folder(), 'key.pem')];
  const name = ['-subj', '/CN=api.openai.com', '-addext', 'subjectAltName=DNS:api.openai.com'];
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const { status, stderr } = spawnSync('openssl', [...kind, ...name, '-keyout', keyPath, '-out', path], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl made no certificate:\n${stderr}`);
  return { cert: readFileSync(path), key: readFileSync(keyPath) };
}

/** True where the vendor that is only reached over TLS can be played. */
export const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** The messages of a session, as `show --json` gives them. */
export async function messagesOf(dataDir: string, session: string): Promise<AgentMessage[]> {
  const { stdout } = await here(['show', session, '--json', '--data-dir', dataDir]);
  return stdout
    .trimEnd()
    .split('\n')
    .flatMap((line) => (JSON.parse(line) as MessageItem).message ?? []);
}

/** The bytes of all files under a folder, those of the database and its log among them. */
export const bytesUnder = (path: string): Buffer =>
  Buffer.concat(
    readdirSync(path, { recursive: true, encoding: 'utf8' })
      .map((name) => join(path, name))
      .filter((file) => statSync(file).isFile())
      .map((file) => readFileSync(file)),
  );

/** Pieces of a key that nobody needs to see: its secret part, and the beginning of that. */
export const secretsOf = (key: string): string[] => [
  key,
  key.slice(-20),
  key.slice(0, 24),
  Buffer.from(key).toString('base64').slice(4, 40),
];
