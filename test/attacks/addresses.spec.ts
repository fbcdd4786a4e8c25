import os from 'node:os';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startApp, type TestApp } from '../../libs/local/src/confine/test/app.js';
import { WebModule } from '../../libs/local/src/web/index.js';
import { type Answer, Site } from './support/site.js';

let site: Site;
beforeAll(async () => {
  site = await Site.open();
});
afterAll(() => site.close());
beforeEach(() => site.reset(false));

const LOOPBACK = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f.1',
  '0x7F000001',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '0',
  '0.0.0.0',
  '127.255.255.254',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::127.0.0.1]',
  '[2002:7f00:1::]',
  '[2001:0:7f00:1::80ff:fffe]',
  '[2606:4700::5efe:7f00:1]',
  '%31%32%37.0.0.1',
  '１２７.0.0.1',
  '127。0。0。1',
];
const METADATA = [
  '169.254.169.254',
  '2852039166',
  '0xA9FEA9FE',
  '[::ffff:a9fe:a9fe]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::a9fe:a9fe]',
  '[2002:a9fe:a9fe::]',
  '[2606:4700::200:5efe:a9fe:a9fe]',
  '[2001:0:a9fe:a9fe::1]',
  '[fe80::a9fe:a9fe]',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
  '[fd00:c1::a9fe:a9fe]',
  '[fd00:42::42]',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
];

describe('a URL', () => {
  it.each(LOOPBACK)('with host %s reaches no service of this machine', async (host) => {
    expect(await site.get({ url: `http://${host}:${site.port}/` })).toMatchObject({ ok: false, error: 'blocked_host' });
    expect(site.hits).toEqual([]);
  });

  it.each(METADATA)('with host %s reaches no credentials of a cloud, also where private addresses are open', async (host) => {
    site.reset(true);
    expect(await site.get({ url: `http://${host}/latest/meta-data/`, timeout_ms: 2_000 })).toMatchObject({
      ok: false,
      error: 'blocked_host',
    });
  });

  it.each(['[fe80::1%25eth0]', '[::1%lo]', '127.0.0.1%00', '127.0.0.256', '0x100000000', 'a b'])('with host %s is none', async (host) => {
    expect(await site.get({ url: `http://${host}:${site.port}/` })).toMatchObject({ ok: false, error: 'invalid_url' });
  });
});

describe('a name', () => {
  it.each([...LOOPBACK, ...METADATA].filter((host) => /^\[[0-9a-f:.]+\]$|^\d+\.\d+\.\d+\.\d+$/.test(host)))(
    'that resolves to %s reaches nothing',
    async (host) => {
      const address = host.replace(/[[\]]/g, '');
      site.names['evil.test'] = [['93.184.216.34', address]];
      expect(await site.get({ url: `http://evil.test:${site.port}/`, timeout_ms: 2_000 })).toMatchObject({
        ok: false,
        error: 'blocked_host',
      });
      expect(site.hits).toEqual([]);
    },
  );

  it.each(['fe80::1%eth0', '::1%lo', '::ffff:127.0.0.1%1'])('that resolves to %s reaches nothing', async (address) => {
    site.names['zone.test'] = [[address]];
    expect(await site.get({ url: `http://zone.test:${site.port}/` })).toMatchObject({ ok: false, error: 'blocked_host' });
  });

  it('that answers otherwise a moment later is dialled at the address that was checked', async () => {
    site.names['rebind.test'] = [['203.0.114.1'], ['127.0.0.1'], ['127.0.0.1']];
    expect((await site.get({ url: `http://rebind.test:${site.port}/`, timeout_ms: 400 })).ok).toBe(false);
    expect(site.hits).toEqual([]);
    expect(site.names['rebind.test']).toHaveLength(2);
  });

  it('is asked for anew at each request, and each answer is checked', async () => {
    site.reset(true);
    site.names['turns.test'] = [['127.0.0.1'], ['169.254.169.254']];
    expect(await site.get({ url: `http://turns.test:${site.port}/` })).toMatchObject({ ok: true });
    expect(await site.get({ url: `http://turns.test:${site.port}/` })).toMatchObject({ ok: false, error: 'blocked_host' });
  });

  it('of this machine in the system itself reaches nothing', async () => {
    const plain: TestApp = await startApp(WebModule);
    try {
      for (const host of ['localhost', 'localhost.', 'LOCALHOST', 'lOcAlHoSt.'])
        expect((await plain.call<Answer>('web::fetch', { url: `http://${host}:${site.port}/` })).ok).toBe(false);
      expect(site.hits).toEqual([]);
    } finally {
      await plain.close();
    }
  });
});

describe('a public address that is this machine itself', () => {
  it.each([
    ['IPv4', '93.184.216.34', 'http://93.184.216.34/'],
    ['IPv6', '2606:2800:220:1::1', 'http://[2606:2800:220:1:0:0:0:1]/'],
    ['mapped', '93.184.216.34', 'http://[::ffff:93.184.216.34]/'],
  ])('does not lead to its services (%s)', async (_what, address, url) => {
    const spied = vi.spyOn(os, 'networkInterfaces').mockReturnValue({ eth0: [{ address } as os.NetworkInterfaceInfo] });
    try {
      expect(await site.get({ url, timeout_ms: 2_000 })).toMatchObject({ ok: false, error: 'blocked_host' });
    } finally {
      spied.mockRestore();
    }
  });
});
