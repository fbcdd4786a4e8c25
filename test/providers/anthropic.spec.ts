import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AnthropicProvider, AnthropicProviderModule } from '../../libs/local/src/providers/index.js';
import { assistant, ProviderBench, readTo, result, user } from '../support/provider-bench.js';
import { anthropicStream } from '../support/vendor-scripts.js';
import { VendorServer } from '../support/vendor-server.js';

const MODEL = 'claude-sonnet-4-5';
let server: VendorServer;
let bench: ProviderBench;

beforeAll(async () => {
  server = await VendorServer.start();
  bench = await ProviderBench.start('anthropic', AnthropicProviderModule, server);
});
beforeEach(() => server.reset());
afterAll(async () => {
  await bench.close();
  await server.close();
});

const shellExec = { name: 'shell::exec', description: 'Runs a command.', parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] } };

describe('a Messages stream', () => {
  it('gives text as frames and one terminal message', async () => {
    server.script({ events: anthropicStream([{ text: 'Hello, wörld 👋🏽 日本語' }]) });
    const streamed = await bench.run({ model: MODEL });
    expect(streamed.ok).toBe(true);
    expect(streamed.types.filter((type) => type !== 'text_delta')).toEqual(['start', 'usage', 'ping', 'text_start', 'text_end', 'usage', 'stop', 'done']);
    expect(streamed.joined('text_delta')).toBe('Hello, wörld 👋🏽 日本語');
    expect(streamed.message).toMatchObject({
      role: 'assistant', provider: 'anthropic', model: MODEL, stop_reason: 'end', native_stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'Hello, wörld 👋🏽 日本語' }], usage: { input: 11, output: 42 },
    });
    const withPartial = streamed.frames.filter((frame) => 'partial' in frame).map((frame) => frame.type);
    expect(new Set(withPartial)).toEqual(new Set(['start', 'text_start', 'text_end']));
  });

  it('gives calls under their real ids', async () => {
    server.script({ events: anthropicStream([{ text: 'Let me look.' }, { call: 'shell__exec', id: 'toolu_1', args: { command: 'ls "ü 🦊"' } }]) });
    const { message, frames } = await bench.run({ model: MODEL, tools: [shellExec] });
    expect(server.requests[0]?.violation).toBeNull();
    expect(message.stop_reason).toBe('function_call');
    expect(message.content[1]).toEqual({ type: 'function_call', id: 'toolu_1', function_id: 'shell::exec', arguments: { command: 'ls "ü 🦊"' } });
    expect(frames.find((frame) => frame.type === 'functioncall_start')).toMatchObject({
      id: 'toolu_1', partial: { content: [{ type: 'text' }, { type: 'function_call', function_id: 'shell::exec', arguments: {} }] },
    });
    expect(JSON.stringify(frames)).not.toContain('shell__exec');
  });

  it('aborts the request when the reader closes', async () => {
    server.script({ events: anthropicStream([{ text: 'half of it' }], { cut: true }), ending: 'stall' });
    const { reader, result: ended } = await bench.open({ model: MODEL });
    await readTo(reader, 'text_end');
    reader.close();
    await ended;
    expect(await server.requests[0]?.closed).toBe('cancelled');
  });

  it('sends results after their calls', async () => {
    server.script({ events: anthropicStream([{ text: 'ok' }]) });
    const call = { type: 'function_call' as const, id: 'toolu_1', function_id: 'shell::exec', arguments: { command: 'ls' } };
    await bench.run({ model: MODEL, tools: [shellExec], system_prompt: 'Be brief.', messages: [user('go'), assistant([call]), result('toolu_1', 'a.txt')] });
    expect(server.requests[0]?.violation).toBeNull();
    expect(server.lastBody).toMatchObject({ system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] });
  });

  it('registers itself with its models', async () => {
    await bench.app.get(AnthropicProvider).register(bench.bus);
    expect(bench.calls.register[0]).toMatchObject({ id: 'anthropic', credential_env_var: 'ANTHROPIC_API_KEY', defaults: { api_url: 'https://api.anthropic.com' } });
  });
});
