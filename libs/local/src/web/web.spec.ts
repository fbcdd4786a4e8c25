import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { failure, startApp, type TestApp } from '../confine/test/app.js';
import { type Resolve, WEB_RESOLVE } from './connection.js';
import { WebModule } from './index.js';
import type { FetchFailure, FetchSuccess } from './web.service.js';

let app: TestApp;
let server: Server;
let base: string;
let port: number;
let hits: string[];
let respond: (request: IncomingMessage, response: ServerResponse) => void;
/** Addresses of names, in the order in which they are given out. */
const names: { [name: string]: string[][] } = {};
const resolve: Resolve = (hostname, _options, done) => {
  const answers = names[hostname];
  const addresses = (answers !== undefined && answers.length > 1 ? answers.shift() : answers?.[0]) ?? [];
  if (addresses.length === 0) done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' }), []);
  else
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
};

beforeAll(async () => {
  app = await startApp(WebModule, { providers: [{ provide: WEB_RESOLVE, useValue: resolve }], tokens: [WEB_RESOLVE] });
  server = createServer((request, response) => {
    hits.push(`${request.method} ${request.url}`);
    respond(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
  base = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await app.close();
});
beforeEach(() => {
  hits = [];
  app.values.allow_private_addresses = true;
  respond = (_request, response) => response.end('ok');
});

type Answer = Omit<FetchSuccess, 'ok'> & Omit<FetchFailure, 'ok'> & { ok: boolean };
const get = (payload: object): Promise<Answer> => app.call('web::fetch', payload);
const answer = (status: number, headers: { [name: string]: string | string[] }, body: string | Buffer = ''): void => {
  respond = (_request, response) => response.writeHead(status, headers).end(body);
};

describe('web::fetch', () => {
  it('gives the response as it is, whatever its status', async () => {
    answer(404, { 'content-type': 'text/plain; charset=utf-8', 'X-One': '1' }, 'ünot here');
    expect(await get({ url: `${base}/x?y=1` })).toMatchObject({
      ok: true,
      status: 404,
      status_text: 'Not Found',
      headers: { 'x-one': '1' },
      body: 'ünot here',
      response_format: 'text',
      bytes_truncated: false,
    });
    expect(hits).toEqual(['GET /x?y=1']);
  });

  it('sends method, headers and body', async () => {
    respond = (request, response) => {
      let body = '';
      request
        .on('data', (chunk: Buffer) => (body += chunk.toString()))
        .on('end', () =>
          response.end(
            JSON.stringify({ method: request.method, type: request.headers['content-type'], own: request.headers['x-own'], body }),
          ),
        );
    };
    const posted = await get({ url: base, method: 'post', json: { a: [1] }, headers: { 'X-Own': 'v' }, response_format: 'json' });
    expect(posted.json).toEqual({ method: 'POST', type: 'application/json', own: 'v', body: '{"a":[1]}' });
    expect((await get({ url: base, method: 'PUT', body: 'raw', response_format: 'json' })).json).toMatchObject({
      method: 'PUT',
      body: 'raw',
    });
    expect((await get({ url: base, body: 'ignored', response_format: 'json' })).json).toMatchObject({ method: 'GET', body: '' });
    expect((await get({ url: base, method: 'HEAD' })).body).toBe('');
  });

  it('parses JSON, or says why it cannot', async () => {
    answer(200, { 'content-type': 'application/json' }, '{"a":1}');
    expect(await get({ url: base, response_format: 'json' })).toMatchObject({ json: { a: 1 }, body: '{"a":1}' });
    answer(200, { 'content-type': 'application/json' }, '{"a":');
    const broken = await get({ url: base, response_format: 'json' });
    expect(broken.ok).toBe(true);
    expect(broken.parse_error).toMatch(/JSON/);
  });

  it('cuts a long body, also one that unpacks to be long', async () => {
    answer(200, {}, 'x'.repeat(5_000));
    expect(await get({ url: base, max_bytes: 100 })).toMatchObject({ body: 'x'.repeat(100), bytes_truncated: true });
    answer(200, { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(50_000_000, 'y')));
    const bomb = await get({ url: base });
    expect(bomb).toMatchObject({ ok: true, bytes_truncated: true });
    expect(bomb.body.length).toBe(5_242_880);
  });

  it('decodes what the header or the page says, and does not show binary as text', async () => {
    answer(200, { 'content-type': 'text/plain; charset=iso-8859-1' }, Buffer.from([0xe9]));
    expect((await get({ url: base })).body).toBe('é');
    answer(200, { 'content-type': 'text/html' }, Buffer.concat([Buffer.from('<meta charset="windows-1252"><p>'), Buffer.from([0x80])]));
    expect((await get({ url: base, format: 'text' })).body).toBe('€');
    answer(200, { 'content-type': 'text/plain; charset=no-such' }, 'plain');
    expect((await get({ url: base })).body).toBe('plain');
    answer(200, { 'content-type': 'application/zip' }, Buffer.from([0x50, 0x4b, 0, 0]));
    expect((await get({ url: base })).body).toMatch(/^\[4 bytes of application\/zip/);
    expect((await get({ url: base, response_format: 'base64' })).body).toBe('UEsAAA==');
  });

  it('reads pages as markdown, text or html', async () => {
    answer(200, { 'content-type': 'text/html' }, '<h1>Hi</h1><nav>menu</nav><p>there <a href="/x">x</a></p>');
    expect(await get({ url: base, format: 'markdown' })).toMatchObject({
      transformed: 'markdown',
      content_type: 'text/html',
      body: `# Hi\n\nthere [x](${base}/x)`,
    });
    expect(await get({ url: base, format: 'text' })).toMatchObject({ transformed: 'text', body: 'Hi\n\nthere x' });
    const html = await get({ url: base, format: 'html', include_links: true });
    expect(html.body).toContain('<nav>menu</nav>');
    expect(html.transformed).toBeUndefined();
    expect(html.links?.internal).toEqual([{ href: `${base}/x`, text: 'x' }]);
    answer(200, { 'content-type': 'text/plain' }, '# already');
    expect((await get({ url: base, format: 'markdown' })).body).toBe('# already');
    answer(200, { 'content-type': 'text/html' }, `<p>${'long '.repeat(400_000)}</p>`);
    expect(await get({ url: base, format: 'markdown', max_bytes: 5_000_000 })).toMatchObject({
      transform_error: expect.stringContaining('larger') as string,
    });
    expect(await get({ url: base, format: 'markdown' })).toMatchObject({ bytes_truncated: true, transformed: 'markdown' });
    expect(await get({ url: base, format: 'text', target_elements: ['][bad'] })).toMatchObject({
      ok: true,
      transform_error: expect.any(String) as string,
    });
  });

  it('gives an image as an image', async () => {
    const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
    answer(200, { 'content-type': 'image/png' }, png);
    expect(await get({ url: `${base}/i.png` })).toMatchObject({
      ok: true,
      body: expect.stringMatching(/^image\/png, \d+ bytes/) as string,
      content: [{ type: 'text' }, { type: 'image', mime: 'image/png', data: png.toString('base64') }],
    });
    expect((await get({ url: base, response_format: 'base64' })).content).toBeUndefined();
    answer(404, { 'content-type': 'image/png' }, png);
    expect((await get({ url: base })).content).toBeUndefined();
  });

  it('follows redirects by hand and carries nothing personal elsewhere', async () => {
    const seen: { url: string | undefined; method: string | undefined; auth: string | undefined; host: string | undefined }[] = [];
    respond = (request, response) => {
      seen.push({ url: request.url, method: request.method, auth: request.headers.authorization, host: request.headers.host });
      if (request.url === '/a') response.writeHead(302, { location: '/b' }).end();
      else if (request.url === '/b') response.writeHead(307, { location: `http://other.test:${port}/c` }).end();
      else response.end('end');
    };
    names['other.test'] = [['127.0.0.1']];
    const result = await get({ url: `${base}/a`, method: 'POST', body: 'x', headers: { authorization: 'Bearer t' } });
    expect(result).toMatchObject({ ok: true, body: 'end', redirect_chain: [`${base}/a`, `${base}/b`] });
    expect(seen).toEqual([
      { url: '/a', method: 'POST', auth: 'Bearer t', host: `127.0.0.1:${port}` },
      { url: '/b', method: 'GET', auth: 'Bearer t', host: `127.0.0.1:${port}` },
      { url: '/c', method: 'GET', auth: undefined, host: `other.test:${port}` },
    ]);
    expect(await get({ url: `${base}/a`, follow_redirects: false })).toMatchObject({ status: 302, headers: { location: '/b' } });
  });

  it('ends a redirect that goes on and one that leads nowhere', async () => {
    answer(302, { location: '/again' });
    expect(await get({ url: base })).toMatchObject({ ok: false, error: 'too_many_redirects' });
    expect(hits).toHaveLength(6);
    for (const [location, error] of [
      ['file:///etc/passwd', 'invalid_url'],
      ['http://', 'transport_error'],
      ['gopher://x/', 'invalid_url'],
      ['http://u:p@127.0.0.1/', 'invalid_url'],
    ] as const) {
      answer(302, { location });
      expect(await get({ url: base })).toMatchObject({ ok: false, error });
    }
  });

  it.each([
    '127.0.0.1',
    'localhost-by-number.2130706433',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '017700000001',
    '127.1',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '[::ffff:169.254.169.254]',
    '10.0.0.1',
    '192.168.0.1',
    '172.16.0.1',
    '[fd00::1]',
    '[fe80::1]',
    '[64:ff9b::7f00:1]',
    '127。0。0。1',
    'loop.test',
    'mixed.test',
    'six.test',
    'meta.test',
  ])('refuses %s, also as the target of a redirect', async (host) => {
    names['loop.test'] = [['127.0.0.1']];
    names['mixed.test'] = [['93.184.216.34', '10.0.0.1']];
    names['six.test'] = [['::1']];
    names['meta.test'] = [['169.254.169.254']];
    app.values.allow_private_addresses = false;
    const name = host.replace('localhost-by-number.', '');
    const direct = await get({ url: `http://${name}:${port}/` });
    expect(direct).toMatchObject({ ok: false, error: 'blocked_host' });
    expect(hits).toEqual([]);
    app.values.allow_private_addresses = true;
    respond = (_request, response) => {
      app.values.allow_private_addresses = false;
      const target = /^[ -~]+$/.test(name) ? name : encodeURI(name);
      response.writeHead(302, { location: `http://${target}:${port}/stolen` }).end();
    };
    expect(await get({ url: `${base}/start` })).toMatchObject({ ok: false, error: 'blocked_host' });
    expect(hits).toEqual(['GET /start']);
  });

  it('connects to the address that it checked, whatever the name answers afterwards', async () => {
    app.values.allow_private_addresses = false;
    // The first answer is public and leads nowhere here; a second question would be answered with our own server.
    names['rebind.test'] = [['203.0.114.1'], ['127.0.0.1']];
    const result = await get({ url: `http://rebind.test:${port}/`, timeout_ms: 400 });
    expect(result.ok).toBe(false);
    expect(hits).toEqual([]);
    expect(names['rebind.test']).toHaveLength(1);
  });

  it('keeps metadata addresses closed also where private ones are open', async () => {
    expect(await get({ url: 'http://169.254.169.254/latest/meta-data/' })).toMatchObject({ ok: false, error: 'blocked_host' });
    names['meta.test'] = [['169.254.169.254']];
    expect(await get({ url: 'http://meta.test/' })).toMatchObject({
      ok: false,
      error: 'blocked_host',
      message: expect.stringContaining('169.254.169.254') as string,
    });
  });

  it.each([
    [{ url: 'not a url' }, 'invalid_url'],
    [{ url: '/relative' }, 'invalid_url'],
    [{ url: 'ftp://example.org' }, 'invalid_url'],
    [{ url: 'file:///etc/passwd' }, 'invalid_url'],
    [{ url: 'data:text/plain,x' }, 'invalid_url'],
    [{ url: 'http://user:pw@example.org' }, 'invalid_url'],
    [{ url: 'http://example.org', method: 'TRACE' }, 'invalid_payload'],
    [{ url: 'http://example.org', headers: { host: 'internal' } }, 'invalid_payload'],
    [{ url: 'http://example.org', headers: { 'a b': 'c' } }, 'invalid_payload'],
    [{ url: 'http://example.org', headers: { a: 'b\r\nc: d' } }, 'invalid_payload'],
    [{ url: 'http://no-such.test' }, 'transport_error'],
    [{ url: 'http://127.0.0.1:1' }, 'transport_error'],
  ])('answers %j in band', async (payload, error) => {
    const result = await get(payload);
    expect(result).toMatchObject({ ok: false, error, message: expect.any(String) as string });
    expect(Object.keys(result)).toEqual(['ok', 'error', 'message']);
  });

  it('throws the code for a payload that does not fit the schema', async () => {
    expect(await failure(get({}))).toMatch(/^invalid_payload: url is missing/);
    expect(await failure(get({ url: base, format: 'pdf' }))).toMatch(/^invalid_payload: format/);
  });

  it('ends at the timeout and when the caller gives up, before and within the body', async () => {
    respond = () => undefined;
    expect(await get({ url: base, timeout_ms: 100 })).toMatchObject({ ok: false, error: 'timeout' });
    respond = (_request, response) => response.write('begin');
    expect(await get({ url: base, timeout_ms: 100 })).toMatchObject({ ok: false, error: 'timeout' });
    const controller = new AbortController();
    let closed: Promise<unknown> = Promise.resolve();
    respond = (_request, response) => {
      closed = once(response, 'close');
      response.write('begin');
      setTimeout(() => controller.abort(), 20);
    };
    expect(await failure(app.call('web::fetch', { url: base }, { signal: controller.signal }))).toContain('invocation_stopped');
    await closed;
  });
});
