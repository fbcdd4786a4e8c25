import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ensureBuilt, folder, here, type Running, start } from '../cli/harness-cli.js';

beforeAll(ensureBuilt);

interface Health {
  status: string;
  details: { [check: string]: { status: string; message?: string; faults?: string[] } };
}

/** A worker as a user starts it; its gateway and its service are on free ports. */
async function serve(env: NodeJS.ProcessEnv = {}): Promise<{ dataDir: string; url: string; worker: Running }> {
  const dataDir = folder();
  const worker = start(['serve', '--data-dir', dataDir], { env: { HARNESS_GATEWAY_PORT: '0', HARNESS_HTTP_PORT: '0', ...env } });
  await worker.until('stdout', /health \S+\n/);
  return { dataDir, url: /health (\S+)\n/.exec(worker.stdout)?.[1] ?? '', worker };
}

async function ready(url: string): Promise<Health & { code: number }> {
  const response = await fetch(`${url}/health/ready`);
  return { code: response.status, ...((await response.json()) as Health) };
}

describe('the service of a worker', () => {
  it('is live and ready, counts what happens, and ends with the worker', async () => {
    const { dataDir, url, worker } = await serve();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    expect(await ready(url)).toMatchObject({
      code: 200,
      status: 'ok',
      details: { store: { status: 'up' }, queue: { status: 'up' }, disk: { status: 'up' }, configuration: { status: 'up' } },
    });
    const call = '/call state::get {"scope":"a","key":"b"}';
    expect(await here(['send', call, '--provider', 'demo', '--allow', 'state::*', '--data-dir', dataDir])).toMatchObject({ code: 0 });
    const odd = '/call no::such"} 1 {} && state::get {"scope":"a","key":"b"}';
    expect(await here(['send', odd, '--provider', 'demo', '--allow', 'coder::*', '--data-dir', dataDir])).toMatchObject({ code: 0 });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/^harness_turns_total\{status="completed"\} 2$/m);
    expect(metrics).toMatch(/^harness_calls_total\{function_id="other",outcome="denied"\} [1-9]/m);
    expect(metrics).not.toContain('no::such');
    expect(metrics).toMatch(/^harness_calls_total\{function_id="state::get",outcome="ok"\} 1$/m);
    expect(metrics).toMatch(/^harness_steps_total [2-9]$/m);
    expect(metrics).toMatch(/^harness_tokens_total\{provider="demo",model="demo",kind="output"\} [1-9]/m);
    expect(metrics).toMatch(/^harness_commit_seconds_count [1-9]/m);
    expect(metrics).toMatch(/^harness_parked_turns 0$/m);
    expect(metrics).toMatch(/^harness_nodejs_eventloop_lag_seconds/m);
    worker.signal('SIGTERM');
    expect(await worker.result).toMatchObject({ code: 0 });
    await expect(fetch(`${url}/health/live`)).rejects.toThrow();
  });

  it('is not ready while the store cannot be written, and is again when it can', async () => {
    const { dataDir, url } = await serve();
    const other = new Database(join(dataDir, 'harness.db'));
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    expect(await ready(url)).toMatchObject({ code: 503, status: 'error', details: { store: { status: 'down' } } });
    other.exec('ROLLBACK');
    await expect.poll(async () => (await ready(url)).code, { timeout: 20_000 }).toBe(200);
  });

  it('shows a fault of the configuration, and goes on', async () => {
    const { dataDir, url } = await serve();
    mkdirSync(join(dataDir, 'config'), { recursive: true });
    writeFileSync(join(dataDir, 'config', 'harness.yaml'), 'max_depth: many\n');
    await expect.poll(async () => (await ready(url)).details['configuration']?.status, { timeout: 20_000 }).toBe('degraded');
    const health = await ready(url);
    expect(health).toMatchObject({ code: 200, status: 'degraded' });
    expect(health.details['configuration']?.faults?.join()).toContain('max_depth');
  });

  it('can be left out; a port that is taken or none is refused with what to do', async () => {
    const { worker } = await serve({ HARNESS_HTTP_PORT: 'off' });
    expect(worker.stdout).toContain('health none');
    const taken = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void taken.close());
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as { port: number };
    const env = { HARNESS_GATEWAY_PORT: '0' };
    const refused = await start(['serve', '--data-dir', folder()], { env: { ...env, HARNESS_HTTP_PORT: String(port) } }).result;
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringMatching(/HARNESS_HTTP_PORT/) as string });
    const wrong = await start(['serve', '--data-dir', folder()], { env: { ...env, HARNESS_HTTP_PORT: 'http' } }).result;
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('HARNESS_HTTP_PORT must be a number') as string });
  });
});
