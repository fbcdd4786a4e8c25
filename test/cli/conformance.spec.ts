import { beforeAll, describe, expect, it } from 'vitest';
import { type ScenarioResult, scenarios } from '#libs/conformance';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { ensureBuilt, folder, here, start } from './harness-cli.js';

beforeAll(ensureBuilt);

/** The address of a worker as a user starts it. */
async function served(env: NodeJS.ProcessEnv = {}): Promise<string> {
  const worker = start(['serve', '--data-dir', folder()], { env: { HARNESS_GATEWAY_PORT: '0', HARNESS_HTTP_PORT: 'off', ...env } });
  await worker.until('stdout', /gateway ws:\/\/\S+/);
  return /gateway (ws:\/\/[^\s,]+)/.exec(worker.stdout)?.[1] ?? '';
}

describe('harness-cli conformance', () => {
  it('shows that a served harness keeps the contract, and leaves nothing behind', async () => {
    const url = await served();
    const { code, stdout } = await here(['conformance', '--url', url]);
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${scenarios.length} passed, 0 failed, 0 skipped`) as string,
    });
    for (const { id } of scenarios) expect(stdout).toMatch(new RegExp(`^${id} +passed +\\d+ `, 'm'));
    expect(await here(['sessions', '--url', url])).toMatchObject({ code: 0, stdout: '' });
    expect((await here(['hooks', '--url', url])).stdout).not.toContain('conformance');
  });

  it.skipIf(!hasRedis)('does so where workers share their steps by Redis, scenario by scenario as JSON', async () => {
    const url = await served({ REDIS_URL: (await RedisServer.start()).url });
    const ids = ['plain-answer', 'merge', 'tool-turn', 'hold-execute', 'stop-parked', 'spawn', 'sweep'];
    const { code, stdout } = await here(['conformance', '--url', url, '--json', ...ids.flatMap((id) => ['--only', id])]);
    const results = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as ScenarioResult);
    expect(results.filter(({ result }) => result !== 'passed')).toEqual([]);
    expect({ code, ids: results.map(({ id }) => id).sort() }).toEqual({ code: 0, ids: [...ids].sort() });
  });

  it('wants an address and scenarios that there are', async () => {
    expect(await here(['conformance'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url (or III_URL) is missing') as string,
    });
    expect(await here(['conformance', '--url', 'ws://127.0.0.1:1', '--only', 'plain-anser'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean plain-answer?') as string,
    });
    expect(await here(['conformance', '--url', 'ws://127.0.0.1:1'])).toMatchObject({ code: 3 });
    expect(await here(['conformance'], { env: { III_URL: 'ws://127.0.0.1:1' } })).toMatchObject({ code: 3 });
  });
});
