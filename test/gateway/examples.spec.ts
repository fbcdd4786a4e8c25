import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, folder, here, ROOT, Running, start } from '../cli/harness-cli.js';
import { connect } from './remote.js';

beforeAll(ensureBuilt);

const ENV = { HARNESS_GATEWAY_PORT: '0', HARNESS_GATEWAY_TOKEN: 'for the examples only' };

interface Served {
  url: string;
  dataDir: string;
  /** Runs one of the programs of `examples/` until it says that it is there. */
  example(name: string, ready: RegExp, args?: readonly string[]): Promise<Running>;
  send(message: string, ...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
}

/** A worker as a user starts it, with a gateway on a free port that wants a token. */
async function serve(env: NodeJS.ProcessEnv = {}): Promise<Served> {
  const dataDir = folder();
  const worker = start(['serve', '--data-dir', dataDir], { env: { ...ENV, ...env } });
  await worker.until('stdout', /gateway ws:\/\/\S+/);
  const url = /gateway (ws:\/\/[^\s,]+)/.exec(worker.stdout)?.[1] ?? '';
  return {
    url,
    dataDir,
    example: async (name, ready, args = []) => {
      const environment = { PATH: process.env['PATH'], HARNESS_GATEWAY: url, HARNESS_GATEWAY_TOKEN: ENV.HARNESS_GATEWAY_TOKEN };
      const program = new Running(spawn(process.execPath, [join(ROOT, 'examples', `${name}.mjs`), ...args], { env: environment }));
      await program.until('stderr', ready);
      return program;
    },
    send: (message, ...argv) => here(['send', '--url', url, message, ...argv], { env: ENV }),
  };
}

describe('programs that connect', () => {
  it('a function: a model calls it when it may', async () => {
    const served = await serve();
    const program = await served.example('function', /is there/);
    const call = '/call example::add {"a":2,"b":40}';
    expect(await served.send(call, '--provider', 'demo', '--allow', 'example::*')).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/example::add[\s\S]*42/) as string,
    });
    const denied = await served.send(call, '--provider', 'demo', '--allow', 'coder::*');
    expect(denied.stderr).toMatch(/not allow|denied/i);
    program.signal('SIGTERM');
    expect(await program.result).toMatchObject({ code: 0 });
    expect((await served.send(call, '--provider', 'demo', '--allow', 'example::*')).stderr).toMatch(/example::add/);
  });

  it('a consumer: sends, hears of the turn, has the answer', async () => {
    const served = await serve();
    const program = await served.example('consumer', /completed/, ['/say all is well']);
    expect(await program.result).toMatchObject({ code: 0, stdout: expect.stringContaining('all is well') as string });
  });

  it('a hook: denies, changes arguments, and holds until somebody says yes', async () => {
    const served = await serve();
    const program = await served.example('hook', /guarded/);
    const shell = (command: string, ...args: string[]): Promise<{ code: number; stderr: string }> =>
      served.send(`/call shell::exec ${JSON.stringify({ command, args })}`, '--provider', 'demo', '--allow', 'shell::*');
    expect((await shell('rm', 'x')).stderr).toContain('nothing is removed here');
    const echoed = await shell('echo', 'a', 'secret', 'word');
    expect(echoed.stderr).toContain('a *** word');
    const held = shell('sh', '-c', 'echo released');
    await program.until('stdout', /function_call_id/);
    const client = connect(served.url, { headers: { authorization: `Bearer ${ENV.HARNESS_GATEWAY_TOKEN}` } });
    const call = JSON.parse(program.stdout) as { [key: string]: string };
    await expect
      .poll(() => client.trigger<unknown, { resolved: boolean }>({ function_id: 'example-hook::release', payload: call }), {
        timeout: 20_000,
      })
      .toMatchObject({ resolved: true });
    expect(await held).toMatchObject({ code: 0, stderr: expect.stringContaining('released') as string });
  });

  it('a provider: its model answers, streamed', async () => {
    const served = await serve();
    await served.example('provider', /is there/);
    const answer = await served.send('good day to you', '--provider', 'parrot', '--model', 'parrot-1');
    expect(answer).toMatchObject({ code: 0, stdout: 'You said: good day to you\n' });
  });
});
