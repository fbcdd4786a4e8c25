import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AnthropicProvider, AnthropicProviderModule, OpenAiProvider, OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { makeRig, type Rig } from '../../libs/local/src/router/test/rig.js';
import { user } from '../support/provider-bench.js';
import { anthropicStream, chatStream } from '../support/vendor-scripts.js';
import { VendorServer } from '../support/vendor-server.js';

const KEY = 'sk-ant-secret-0123456789';

describe('the providers behind the router', () => {
  let server: VendorServer;
  let rig: Rig;
  beforeAll(async () => {
    server = await VendorServer.start();
    const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: server.url, OPENAI_BASE_URL: `${server.url}/v1` };
    rig = await makeRig({ env, modules: [AnthropicProviderModule, OpenAiProviderModule] });
    await new AnthropicProvider(rig.bus).register(rig.bus);
    await new OpenAiProvider(rig.bus).register(rig.bus);
  });
  beforeEach(() => {
    server.reset();
    rig.pauses.length = 0;
  });
  afterAll(async () => {
    await rig.close();
    await server.close();
  });

  it('answer with the key and the address of the environment', async () => {
    server.script({ events: anthropicStream([{ text: 'hello' }]) }, { events: chatStream([{ text: 'hello' }]) });
    const { frames, response } = await rig.chat({ model: 'claude-sonnet-4-5', messages: [user('hi')] });
    expect(response).toMatchObject({ ok: true, provider: 'anthropic', usage: { cost_usd: expect.any(Number) } });
    expect(frames.at(-1)).toMatchObject({ type: 'done', message: { content: [{ text: 'hello' }] } });
    expect(server.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'x-api-key': KEY });
    expect((await rig.chat({ model: 'llama', provider: 'openai', messages: [user('hi')] })).response.ok).toBe(true);
  });

  it('C22 are asked again after the time that the vendor names, and once for each try', async () => {
    const busy = {
      status: 429,
      headers: { 'retry-after': '2' },
      body: { type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } },
    };
    server.script(
      busy,
      { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } },
      { events: anthropicStream([{ text: 'ok' }]) },
    );
    const { frames } = await rig.chat({ model: 'claude-sonnet-4-5', messages: [user('hi')] });
    expect(server.requests).toHaveLength(3);
    expect(rig.pauses[0]).toBeGreaterThanOrEqual(2_000);
    expect(frames.filter((frame) => frame.type === 'done' || frame.type === 'error')).toHaveLength(1);
    expect(frames.at(-1)).toMatchObject({ type: 'done' });
  });

  it('are not asked again once text has come', async () => {
    server.script({ events: anthropicStream([{ text: 'half' }], { cut: true }) });
    const { frames, response } = await rig.chat({ model: 'claude-sonnet-4-5', messages: [user('hi')] });
    expect(server.requests).toHaveLength(1);
    expect(response.ok).toBe(false);
    expect(frames.at(-1)).toMatchObject({ type: 'error', error: { error_kind: 'transient', content: [{ text: 'half' }] } });
  });

  it('C55 never show the key', async () => {
    server.script({ status: 401, body: { type: 'error', error: { type: 'authentication_error', message: `invalid x-api-key ${KEY}` } } });
    const { frames, response } = await rig.chat({ model: 'claude-sonnet-4-5', messages: [user('hi')] });
    expect(JSON.stringify([frames, response])).not.toContain(KEY.slice(0, 10));
    expect(frames.at(-1)).toMatchObject({ type: 'error', error: { error_kind: 'auth_expired' } });
  });
});
