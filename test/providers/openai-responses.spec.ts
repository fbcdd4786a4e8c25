import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { ProviderBench, readTo, result, user } from '../support/provider-bench.js';
import { responsesStream } from '../support/vendor-scripts.js';
import { VendorServer } from '../support/vendor-server.js';

const MODEL = 'gpt-5';
const provider_options = { api: 'responses' };
let server: VendorServer;
let bench: ProviderBench;

beforeAll(async () => {
  server = await VendorServer.start();
  bench = await ProviderBench.start('openai', OpenAiProviderModule, server, '/v1');
});
beforeEach(() => server.reset());
afterAll(async () => {
  await bench.close();
  await server.close();
});

const look = {
  name: 'web::fetch',
  description: 'Fetches a page.',
  parameters: { type: 'object', properties: { url: { type: 'string' } } },
};

describe('a Responses stream', () => {
  it('gives thinking, text and calls, and the counts', async () => {
    server.script({
      events: responsesStream([
        { thinking: 'think 日本', signature: 'ENC-1' },
        { text: 'Hello 👋' },
        { redacted: 'ENC-2' },
        { call: 'web__fetch', id: 'call_1', args: { url: 'ü' } },
      ]),
    });
    const { message, frames } = await bench.run({
      model: MODEL,
      provider_options,
      tools: [look],
      thinking_level: 'low',
      system_prompt: 'Be brief.',
    });
    expect(server.requests[0]).toMatchObject({ path: '/v1/responses', violation: null });
    expect(server.lastBody).toMatchObject({
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'low', summary: 'auto' },
      instructions: 'Be brief.',
      tools: [{ name: 'web__fetch', strict: false }],
    });
    expect(message).toMatchObject({
      stop_reason: 'function_call',
      usage: { input: 20, output: 15, cache_read: 10, reasoning: 6, cost_usd: expect.any(Number) },
    });
    expect(message.content).toMatchObject([
      { type: 'thinking', text: 'think 日本', signature: expect.stringContaining('ENC-1') },
      { type: 'text', text: 'Hello 👋' },
      { type: 'redacted_thinking', data: expect.stringContaining('ENC-2') },
      { type: 'function_call', id: 'call_1', function_id: 'web::fetch', arguments: { url: 'ü' } },
    ]);
    expect(JSON.stringify(frames)).not.toContain('web__fetch');
  });

  it('C16 sends reasoning back with what followed it', async () => {
    server.script(
      {
        events: responsesStream([
          { thinking: 'because', signature: 'ENC' },
          { call: 'web__fetch', id: 'call_1', args: {} },
        ]),
      },
      { events: responsesStream([{ text: 'done' }]) },
    );
    const first = await bench.run({ model: MODEL, provider_options, tools: [look] });
    await bench.run({ model: MODEL, provider_options, tools: [look], messages: [user('go'), first.message, result('call_1', 'page')] });
    expect(server.requests[1]?.violation).toBeNull();
    expect(server.lastBody['input']).toEqual([
      { role: 'user', content: [{ type: 'input_text', text: 'go' }] },
      { type: 'reasoning', id: 'rs_0', encrypted_content: 'ENC', summary: [{ type: 'summary_text', text: 'because' }] },
      { type: 'function_call', call_id: 'call_1', name: 'web__fetch', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'page' },
    ]);
  });

  it.each([
    ['another model', { model: 'gpt-5-mini' }],
    ['a stopped answer', { stop_reason: 'aborted' as const }],
  ])('C16 drops reasoning of %s', async (_name, over) => {
    server.script({ events: responsesStream([{ redacted: 'ENC' }, { text: 'so' }]) }, { events: responsesStream([{ text: 'done' }]) });
    const first = await bench.run({ model: MODEL, provider_options });
    await bench.run({ model: MODEL, provider_options, messages: [user('go'), { ...first.message, ...over }, user('on')] });
    expect(server.requests[1]?.violation).toBeNull();
    expect(server.lastBody['input']).toMatchObject([{ role: 'user' }, { role: 'assistant', content: 'so' }, { role: 'user' }]);
  });

  it('tells the ways of ending apart', async () => {
    server.script(
      { events: responsesStream([{ text: 'cut' }], { status: 'incomplete', reason: 'max_output_tokens' }) },
      { events: responsesStream([{ text: 'bad' }], { status: 'incomplete', reason: 'content_filter' }) },
      { events: responsesStream([{ text: 'part' }], { status: 'failed', error: { code: 'server_error', message: 'it broke' } }) },
      { events: responsesStream([{ text: 'part' }], { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'too fast' } }) },
      {
        events: [
          ...responsesStream([{ text: 'part' }], { cut: true }),
          {
            event: 'error',
            data: {
              type: 'error',
              code: 'context_length_exceeded',
              message: 'Your input exceeds the context window of this model.',
              param: null,
            },
          },
        ],
      },
      { events: responsesStream([{ text: 'part' }], { cut: true }) },
    );
    const ends = [];
    for (let n = 0; n < 6; n += 1) {
      const { message } = await bench.run({ model: MODEL, provider_options });
      ends.push([message.stop_reason, message.error_kind, message.content.length]);
    }
    expect(ends).toEqual([
      ['length', undefined, 1],
      ['error', 'permanent', 1],
      ['error', 'transient', 1],
      ['error', 'rate_limited', 1],
      ['error', 'context_overflow', 1],
      ['error', 'transient', 1],
    ]);
  });

  it('aborts the request when the reader closes', async () => {
    server.script({ events: responsesStream([{ text: 'half' }], { cut: true }), ending: 'stall' });
    const { reader, result: ended } = await bench.open({ model: MODEL, provider_options });
    await readTo(reader, 'text_end');
    reader.close();
    await ended;
    expect(await server.requests[0]?.closed).toBe('cancelled');
  });
});
