import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Site } from './support/site.js';

let site: Site;
beforeAll(async () => {
  site = await Site.open();
});
afterAll(() => site.close());
beforeEach(() => site.reset(true));

describe('a redirect', () => {
  it.each([
    'http://169.254.169.254/latest/meta-data/iam/',
    'http://[::ffff:169.254.169.254]/',
    'http://0xa9fea9fe/',
    '//169.254.169.254/',
    'http:169.254.169.254/x',
    'http:\\\\169.254.169.254\\x',
    'http://meta.test/',
  ])('to %s reaches no credentials', async (location) => {
    site.names['meta.test'] = [['169.254.169.254']];
    site.respond = (_request, response) => response.writeHead(302, { location }).end();
    const answer = await site.get({ url: site.base, timeout_ms: 2_000 });
    // `http:x` without slashes is relative to an http URL, and stays at the server.
    if (location.startsWith('http:1')) expect(answer).toMatchObject({ ok: false, error: 'too_many_redirects' });
    else expect(answer).toMatchObject({ ok: false, error: 'blocked_host' });
  });

  it('to this machine is refused once private addresses are closed, after any number of hops', async () => {
    site.respond = (request, response) => {
      const hop = Number(request.url?.slice(1));
      if (hop === 3) site.app.values.allow_private_addresses = false;
      response.writeHead(307, { location: `/${hop + 1}` }).end();
    };
    expect(await site.get({ url: `${site.base}/1` })).toMatchObject({ ok: false, error: 'blocked_host' });
    expect(site.hits).toEqual(['GET /1', 'GET /2', 'GET /3']);
  });

  it('to another site takes no key along, in whatever header it was', async () => {
    const seen: { [name: string]: unknown }[] = [];
    site.names['other.test'] = [['127.0.0.1']];
    site.respond = (request, response) => {
      seen.push(request.headers);
      if (request.url === '/a') response.writeHead(302, { location: '/b' }).end();
      else if (request.url === '/b') response.writeHead(302, { location: `http://other.test:${site.port}/c` }).end();
      else response.end();
    };
    const keys = { authorization: 'k', cookie: 'k', 'x-api-key': 'k', 'private-token': 'k', 'x-goog-api-key': 'k' };
    await site.get({ url: `${site.base}/a`, headers: { ...keys, accept: 'text/x', 'user-agent': 'me' } });
    expect(seen[1]).toMatchObject(keys);
    expect(Object.values(seen[2] ?? {})).not.toContain('k');
    expect(seen[2]).toMatchObject({ accept: 'text/x', 'user-agent': 'me' });
  });

  it('without an end is given up', async () => {
    site.respond = (request, response) => response.writeHead(302, { location: `${request.url}x` }).end();
    expect(await site.get({ url: site.base })).toMatchObject({ ok: false, error: 'too_many_redirects' });
    expect(site.hits).toHaveLength(6);
  });

  it('with a body without an end does not hold the call', async () => {
    let open = 0;
    site.respond = (request, response) => {
      if (request.url === '/end') return void response.end('end');
      response.writeHead(302, { location: '/end', 'content-encoding': 'gzip' });
      const bomb = gzipSync(Buffer.alloc(1_000_000));
      const more = (): unknown => response.destroyed || response.write(bomb, () => setImmediate(more));
      open++;
      response.on('close', () => open--);
      more();
    };
    expect(await site.get({ url: site.base })).toMatchObject({ ok: true, body: 'end' });
    await expect.poll(() => open).toBe(0);
  });
});
