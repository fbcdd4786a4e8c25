import { beforeAll, describe, expect, it } from 'vitest';
import { openRuntime } from '#libs/local';
import { ensureBuilt, folder, here, type Running, start } from '../cli/harness-cli.js';
import { connect, openWithGateway, synced, urlOf } from './remote.js';

beforeAll(ensureBuilt);

const TOKEN = 'shown to the worker';
const ADD = ['send', '/call remote::add {"a":2,"b":40}', '--provider', 'demo', '--allow', 'remote::*'];

/** A worker of a folder, and a program connected to it that has a function of its own. */
async function serve(): Promise<{ dataDir: string; worker: Running; asked: () => number }> {
  const dataDir = folder();
  const worker = start(['serve', '--data-dir', dataDir], { env: { HARNESS_GATEWAY_PORT: '0', HARNESS_GATEWAY_TOKEN: TOKEN } });
  await worker.until('stdout', /gateway ws:\/\/\S+/);
  const url = /gateway (ws:\/\/[^\s,]+)/.exec(worker.stdout)?.[1] ?? '';
  const client = connect(url, { headers: { authorization: `Bearer ${TOKEN}` } });
  let asked = 0;
  client.registerFunction('remote::add', async ({ a, b }: { a: number; b: number }) => {
    asked += 1;
    return { sum: a + b };
  });
  await synced(client);
  return { dataDir, worker, asked: () => asked };
}

describe('a folder that a worker serves', () => {
  it('has turns of the CLI run by that worker, with what other programs have connected to it', async () => {
    const { dataDir, asked } = await serve();
    const env = { HARNESS_GATEWAY_TOKEN: TOKEN };
    const sent = await here([...ADD, '--data-dir', dataDir], { env });
    expect(sent).toMatchObject({ code: 0, stderr: expect.stringContaining('42') as string });
    expect(asked()).toBe(1);
    const functions = await here(['functions', '--search', 'remote', '--data-dir', dataDir], { env });
    expect(functions).toMatchObject({ code: 0, stdout: expect.stringContaining('remote::add') as string });
  });

  it('is worked on by the CLI itself when the worker does not let it in, and says so', async () => {
    const { dataDir, asked } = await serve();
    const sent = await here([...ADD, '--data-dir', dataDir], { env: { HARNESS_GATEWAY_TOKEN: 'another' } });
    expect(sent).toMatchObject({ code: 0, stderr: expect.stringMatching(/cannot be reached.*the token is missing or wrong/) as string });
    const silent = await here([...ADD, '--data-dir', dataDir]);
    expect(silent).toMatchObject({ code: 0, stderr: expect.stringContaining('wants to be shown HARNESS_GATEWAY_TOKEN') as string });
    expect(asked()).toBe(0);
  });

  it('is known to be served also while its worker has had nothing to do for longer than a lease', async () => {
    const leaseMs = 50;
    const rig = await openWithGateway({ leaseMs });
    const client = connect(urlOf(rig));
    client.registerFunction('remote::add', async ({ a, b }: { a: number; b: number }) => ({ sum: a + b }));
    await synced(client);
    await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs));
    for (const role of ['client', 'reader'] as const) {
      const other = await openRuntime({ dataDir: rig.dataDir, role }); // whose start forgets processes that have ended
      try {
        expect(await other.bus.trigger({ function_id: 'remote::add', payload: { a: 2, b: 40 } })).toEqual({ sum: 42 });
      } finally {
        await other.close();
      }
    }
  });

  it('is worked on by the CLI itself once the worker is gone', async () => {
    const { dataDir, worker } = await serve();
    worker.signal('SIGKILL');
    await worker.result;
    const sent = await here(['send', '/say still here', '--provider', 'demo', '--data-dir', dataDir]);
    expect(sent).toMatchObject({ code: 0, stdout: 'still here\n' });
  });
});

describe('--url', () => {
  it('says why nobody can be reached there', async () => {
    const nobody = await here(['sessions', '--url', 'ws://127.0.0.1:1']);
    expect(nobody).toMatchObject({ code: 3, stderr: expect.stringMatching(/127\.0\.0\.1:1: .*ECONNREFUSED/) as string });
    expect(await here(['sessions', '--url', 'http://127.0.0.1:1'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url (or III_URL) must be a WebSocket address') as string,
    });
  });
});
