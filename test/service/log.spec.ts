import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { ensureBuilt, folder, here, start } from '../cli/harness-cli.js';

beforeAll(ensureBuilt, 180_000);

const IN_FILE = 'w9Kd_the0key0in0the0file_31x';
const TOKEN = 'token-of-the-gateway-4711';

it("a vendor that echoes the key does not get it into the worker's log, nor does anything else", async () => {
  const vendor = createServer((request, response) => {
    const echo = `no access for ${request.headers.authorization} (${IN_FILE.slice(0, 14)}…), nor for ${TOKEN}`;
    response.writeHead(401, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: echo, type: 'invalid_request_error', code: 'invalid_api_key' } }));
  });
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void vendor.close());
  const dataDir = folder();
  const address = `http://127.0.0.1:${(vendor.address() as { port: number }).port}/v1`;
  mkdirSync(join(dataDir, 'config'));
  writeFileSync(join(dataDir, 'config', 'llm-router.yaml'), `providers:\n  openai:\n    api_key: ${IN_FILE}\n    api_url: ${address}\n`);
  const worker = start(['serve', '--debug', '--data-dir', dataDir], {
    env: { HARNESS_GATEWAY_PORT: '0', HARNESS_HTTP_PORT: 'off', HARNESS_GATEWAY_TOKEN: TOKEN },
  });
  await worker.until('stdout', /is ready/);
  const env = { HARNESS_GATEWAY_TOKEN: TOKEN };
  await here(['send', 'hello', '--no-wait', '--provider', 'openai', '--model', 'gpt-x', '--data-dir', dataDir], { env });
  await worker.until('stderr', /turn failed/);
  worker.signal('SIGTERM');
  expect(await worker.result).toMatchObject({ code: 0 });
  const lines = worker.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { [key: string]: unknown });
  const failed = lines.find(({ msg }) => msg === 'turn failed');
  expect(failed).toMatchObject({
    level: 'warn',
    session_id: expect.stringMatching(/^s_/) as string,
    turn_id: `t_${String(failed?.['trace_id'])}`,
    reason: 'llm.auth_expired',
    error: expect.stringContaining('no access for') as string,
  });
  for (const secret of [IN_FILE.slice(0, 9), IN_FILE.slice(-9), TOKEN]) expect(worker.stdout + worker.stderr).not.toContain(secret);
});
