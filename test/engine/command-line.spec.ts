import { describe, expect, it, onTestFinished } from 'vitest';
import { HarnessError } from '#libs/contracts';
import { FakeRuntime, run } from '../../apps/harness-cli/test/fake.js';
import { here } from '../cli/harness-cli.js';
import { EngineHost } from './engine-host.js';

describe('the command line and an engine', () => {
  it('says what is lacking where no harness is connected', async () => {
    const engine = await EngineHost.open();
    onTestFinished(async () => await engine.close());
    await engine.host.call('session::ensure', { session_id: 's_there' });
    const asked = await here(['status', 's_there', '--url', engine.url]);
    expect(asked).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/no function harness::status.*\n.*harness-cli serve --url/) as string,
    });
    const unknown = await here(['stop', 's_nobody', '--url', engine.url]);
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no session s_nobody in ws:.*\n.*--data-dir or --url/) as string,
    });
  });

  it('refuses an address that no socket can be opened to', async () => {
    expect(await here(['sessions', '--url', 'ws://127.0.0.1:1#part'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must be a WebSocket address') as string,
    });
  });

  it('ends serving when another worker takes its place', async () => {
    const reason = new HarnessError('harness/duplicate', 'the engine has a harness already');
    const ended = Promise.reject(reason) as Promise<never>;
    ended.catch(() => undefined);
    const runtime = Object.assign(new FakeRuntime(), { ended });
    const served = await run(['serve'], { runtime, env: { HARNESS_HTTP_PORT: 'off' } });
    expect(served).toMatchObject({ code: 3, stderr: expect.stringContaining('the engine has a harness already') as string });
    expect(runtime.closes).toHaveLength(1);
  });
});
