import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AnthropicProviderModule, OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { isLoopback, proxyNote } from '../../libs/local/src/providers/shared/http.js';
import { ProviderBench } from '../support/provider-bench.js';
import { anthropicStream, chatStream } from '../support/vendor-scripts.js';
import { VendorServer } from '../support/vendor-server.js';

const NAMES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];

/** A proxy that sends plain requests for any host to the vendor server, and notes but refuses tunnels. */
async function startProxy(target: VendorServer): Promise<{ server: Server; seen: string[]; auth: (string | undefined)[]; url: string }> {
  const seen: string[] = [];
  const auth: (string | undefined)[] = [];
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '');
    seen.push(`${incoming.method} ${url.host}`);
    auth.push(incoming.headers['proxy-authorization']);
    const { 'proxy-authorization': _, ...headers } = incoming.headers;
    const onward = request(`${target.url}${url.pathname}${url.search}`, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  server.on('connect', (incoming, socket) => {
    seen.push(`CONNECT ${incoming.url}`);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, seen, auth, url: `http://user:hunter2hunter2@127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('C24 proxies', () => {
  let server: VendorServer;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let anthropic: ProviderBench;
  let openai: ProviderBench;
  let kept: [string, string | undefined][];

  beforeAll(async () => {
    server = await VendorServer.start();
    proxy = await startProxy(server);
    anthropic = await ProviderBench.start('anthropic', AnthropicProviderModule, server);
    openai = await ProviderBench.start('openai', OpenAiProviderModule, server, '/v1');
  });
  beforeEach(() => {
    kept = NAMES.map((name) => [name, process.env[name]]);
    for (const name of NAMES) delete process.env[name];
    proxy.seen.length = 0;
    server.reset();
  });
  afterEach(() => {
    for (const [name, value] of kept) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  afterAll(async () => {
    await anthropic.close();
    await openai.close();
    proxy.server.closeAllConnections();
    proxy.server.close();
    await server.close();
  });

  it('are used for every vendor, with a path in the address', async () => {
    process.env['HTTP_PROXY'] = proxy.url;
    anthropic.apiUrl = 'http://vendor.test:8080/some/path';
    server.script({ events: anthropicStream([{ text: 'ok' }]) }, { events: chatStream([{ text: 'ok' }]) });
    expect((await anthropic.run({ model: 'claude-sonnet-4-5' })).message).toMatchObject({ content: [{ text: 'ok' }] });
    openai.apiUrl = 'http://other.test:8080/v1';
    expect((await openai.run({ model: 'x' })).message).toMatchObject({ content: [{ text: 'ok' }] });
    expect(proxy.seen).toEqual(['POST vendor.test:8080', 'POST other.test:8080']);
    expect(proxy.auth[0]).toBe(`Basic ${Buffer.from('user:hunter2hunter2').toString('base64')}`);
    expect(server.requests.map((request) => request.path)).toEqual(['/some/path/v1/messages', '/v1/chat/completions']);
  });

  it('are named when the connection fails, without their password', async () => {
    process.env['HTTPS_PROXY'] = proxy.url;
    process.env['NO_PROXY'] = 'internal.test';
    anthropic.apiUrl = 'https://vendor.test';
    const { message, frames } = await anthropic.run({ model: 'claude-sonnet-4-5' });
    expect(proxy.seen).toEqual(['CONNECT vendor.test:443']);
    expect(message).toMatchObject({
      error_kind: 'transient',
      error_message: expect.stringMatching(/HTTPS_PROXY=http:\/\/127\.0\.0\.1:\d+.*NO_PROXY=internal\.test/),
    });
    expect(message.error_message).toContain('403');
    expect(JSON.stringify(frames)).not.toContain('hunter2');
  });

  it('are not used for this machine', async () => {
    process.env['HTTP_PROXY'] = proxy.url;
    anthropic.apiUrl = server.url;
    server.script({ events: anthropicStream([{ text: 'ok' }]) });
    expect((await anthropic.run({ model: 'claude-sonnet-4-5' })).ok).toBe(true);
    expect(proxy.seen).toEqual([]);
  });

  it('are not used where NO_PROXY says so', async () => {
    process.env['HTTP_PROXY'] = proxy.url;
    process.env['NO_PROXY'] = 'direct.invalid';
    anthropic.apiUrl = 'http://direct.invalid';
    expect((await anthropic.run({ model: 'claude-sonnet-4-5' })).message.error_kind).toBe('transient');
    expect(proxy.seen).toEqual([]);
  });

  it('are told apart from addresses of this machine', () => {
    const loopback = ['http://localhost:1', 'http://127.0.0.1', 'http://127.9.8.7', 'http://[::1]:5', 'http://app.localhost'];
    expect(loopback.map((url) => isLoopback(new URL(url)))).toEqual(loopback.map(() => true));
    expect(['http://localhost.test', 'http://10.0.0.1', 'http://127.0.0.1.test'].some((url) => isLoopback(new URL(url)))).toBe(false);
    expect(proxyNote('https://x.test', { http_proxy: 'http://a:b@p:1' })).toBe('proxy setting: HTTP_PROXY=http://p:1');
    expect(proxyNote('https://x.test', {})).toBe('no proxy is set');
  });
});
