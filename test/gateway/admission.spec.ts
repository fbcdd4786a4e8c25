import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { gatewaySettings, LocalEngine, startGateway } from '#libs/iii';
import { connect, freePort, openWithGateway, synced, urlOf } from './remote.js';

const TOKEN = 'a secret of 1 operator';

/** What comes of opening a socket: `open`, or the status of the refusal. */
async function attempt(url: string, headers: { [name: string]: string } = {}): Promise<string> {
  const socket = new WebSocket(url, { headers });
  onTestFinished(() => socket.terminate());
  return await new Promise((resolve) => {
    socket.on('open', () => resolve('open'));
    socket.on('error', (error) => resolve(/\d{3}/.exec(error.message)?.[0] ?? error.message));
  });
}

describe('who may connect', () => {
  it('no web page, unless it is listed', async () => {
    const rig = await openWithGateway({ gateway: freePort({ HARNESS_GATEWAY_ORIGINS: 'https://console.example, http://localhost:3000' }) });
    for (const path of ['', '/otel', '/ws/channels/x?key=y&dir=read']) {
      expect(await attempt(urlOf(rig) + path, { origin: 'https://evil.example' })).toBe('403');
      expect(await attempt(urlOf(rig) + path, { origin: 'null' })).toBe('403');
    }
    expect(await attempt(urlOf(rig), { origin: 'http://localhost:3000' })).toBe('open');
    expect(await attempt(urlOf(rig))).toBe('open');
    expect(await attempt(`${urlOf(rig)}/elsewhere`)).toBe('404');
  });

  it('only who knows the token: as a header, or as the password of the address', async () => {
    const rig = await openWithGateway({ gateway: freePort({ HARNESS_GATEWAY_TOKEN: TOKEN }) });
    const url = urlOf(rig);
    for (const given of [undefined, 'Bearer wrong', `bearer ${TOKEN}x`, `Basic ${Buffer.from('x:wrong').toString('base64')}`, TOKEN]) {
      expect(await attempt(url, given === undefined ? {} : { authorization: given })).toBe('401');
    }
    await synced(connect(url, { headers: { authorization: `Bearer ${TOKEN}` } }));
    const [scheme, rest] = url.split('//');
    await synced(connect(`${scheme ?? ''}//harness:${encodeURIComponent(TOKEN)}@${rest ?? ''}`));
  });

  it('settings are checked, and a host that others reach needs a token', () => {
    expect(gatewaySettings({})).toEqual({ host: '127.0.0.1', port: 49_134, any_port: true, token: null, origins: [] });
    expect(() => gatewaySettings({ HARNESS_GATEWAY_PORT: '70000' })).toThrow(/gateway\/invalid_setting: HARNESS_GATEWAY_PORT must be/);
    expect(() => gatewaySettings({ HARNESS_GATEWAY_HOST: '0.0.0.0' })).toThrow(/needs HARNESS_GATEWAY_TOKEN/);
    expect(gatewaySettings({ HARNESS_GATEWAY_HOST: '0.0.0.0', HARNESS_GATEWAY_TOKEN: TOKEN }).host).toBe('0.0.0.0');
  });

  it('a port that was asked for and is taken is an error, the usual one makes way', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as { port: number };
    const settings = gatewaySettings({ HARNESS_GATEWAY_PORT: String(port) });
    await expect(startGateway(new LocalEngine(), settings)).rejects.toThrow(
      /gateway\/port_unavailable: port \d+ is taken.*HARNESS_GATEWAY_PORT/,
    );
    const gateway = await startGateway(new LocalEngine(), { ...settings, any_port: true });
    expect(gateway.url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+$/);
    await gateway.close();
  });
});

describe('connections', () => {
  const gatewayOf = async (limits: NonNullable<Parameters<typeof startGateway>[2]>): Promise<{ engine: LocalEngine; url: string }> => {
    const engine = new LocalEngine({ report: () => undefined });
    const gateway = await startGateway(engine, freePort(), limits);
    onTestFinished(async () => await gateway.close());
    return { engine, url: gateway.url };
  };
  const remote = (engine: LocalEngine): number => engine.workers.all().filter((worker) => worker.remote).length;

  it('without a sign of life are dropped, with what they registered', async () => {
    const { engine, url } = await gatewayOf({ ping_ms: 50 });
    const silent = new WebSocket(url, { autoPong: false });
    await once(silent, 'open');
    silent.send(JSON.stringify({ type: 'registerfunction', id: 'silent::run' }));
    await once(silent, 'close');
    expect([remote(engine), engine.functions.get('silent::run')]).toEqual([0, undefined]);
  });

  it('are no more than the limit, and one that says nothing does not stay', async () => {
    const { url } = await gatewayOf({ connections: 2, handshake_ms: 100 });
    expect([await attempt(url), await attempt(url), await attempt(url)]).toEqual(['open', 'open', '503']);
    const { connect: tcp } = await import('node:net');
    const socket = tcp(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'close');
  });

  it('that come back prove who they are, and their old self is gone at once', async () => {
    const { engine, url } = await gatewayOf({});
    const open = async (): Promise<{ socket: WebSocket; hello: { worker_id: string; reattach_token: string } }> => {
      const socket = new WebSocket(url);
      onTestFinished(() => socket.terminate());
      const [data] = (await once(socket, 'message')) as [Buffer];
      return { socket, hello: JSON.parse(data.toString()) as { worker_id: string; reattach_token: string } };
    };
    const first = await open();
    first.socket.send(JSON.stringify({ type: 'registerfunction', id: 'mine::run' }));
    const second = await open();
    const reattach = (token: string): void =>
      second.socket.send(JSON.stringify({ type: 'reattach', previous_worker_id: first.hello.worker_id, reattach_token: token }));
    reattach('a guess');
    second.socket.send(JSON.stringify({ type: 'registerfunction', id: 'mine::run' }));
    const [rejected] = (await once(second.socket, 'message')) as [Buffer];
    expect(JSON.parse(rejected.toString())).toMatchObject({ type: 'registrationrejected', code: 'FUNCTION_NAMESPACE_CONFLICT' });
    reattach(first.hello.reattach_token);
    second.socket.send(JSON.stringify({ type: 'registerfunction', id: 'mine::run' }));
    await once(first.socket, 'close');
    expect([remote(engine), engine.functions.get('mine::run')?.worker.id]).toEqual([1, second.hello.worker_id]);
  });

  it('have one namespace', async () => {
    const { url } = await gatewayOf({});
    const raw = new WebSocket(url);
    await once(raw, 'open');
    raw.send(JSON.stringify({ type: 'invokefunction', function_id: 'engine::workers::register', data: { name: 'x', namespace: 'other' } }));
    const [code] = (await once(raw, 'close')) as [number];
    expect(code).toBe(1008);
  });
});
