import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderStreamRequest, ThinkingLevel } from '#libs/contracts';
import { OpenAiProvider, OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { chatBody } from '../../libs/local/src/providers/openai/chat-request.js';
import { OPENAI_MODELS } from '../../libs/local/src/providers/openai/models.js';
import { apiOf } from '../../libs/local/src/providers/openai/options.js';
import { responsesBody } from '../../libs/local/src/providers/openai/responses-request.js';
import { AssistantDraft } from '../../libs/local/src/providers/shared/draft.js';
import { ToolNames } from '../../libs/local/src/providers/shared/names.js';
import type { VendorRun } from '../../libs/local/src/providers/shared/provider.js';
import { assistant, ProviderBench, readTo, result, user } from '../support/provider-bench.js';
import { chatStream } from '../support/vendor-scripts.js';
import { VendorServer } from '../support/vendor-server.js';

const MODEL = 'llama3.2';
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

describe('a chat completions stream', () => {
  it('C23 gives text as frames and one terminal message, with the counts of the last chunk', async () => {
    server.script({
      events: chatStream([{ text: 'Hello, wörld 👋🏽 日本語' }], {
        usage: {
          prompt_tokens: 20,
          completion_tokens: 9,
          prompt_tokens_details: { cached_tokens: 8 },
          completion_tokens_details: { reasoning_tokens: 3 },
        },
      }),
    });
    const streamed = await bench.run({ model: MODEL, system_prompt: 'Be brief.' });
    expect(server.requests[0]?.path).toBe('/v1/chat/completions');
    expect(server.lastBody).toMatchObject({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
      ],
      stream_options: { include_usage: true },
    });
    expect(streamed.types.filter((type) => type !== 'text_delta')).toEqual(['start', 'text_start', 'text_end', 'usage', 'stop', 'done']);
    expect(streamed.joined('text_delta')).toBe('Hello, wörld 👋🏽 日本語');
    expect(streamed.message).toMatchObject({
      stop_reason: 'end',
      native_stop_reason: 'stop',
      usage: { input: 12, output: 9, cache_read: 8, reasoning: 3 },
    });
  });

  it('gives several calls under their real ids, and thinking that is not signed', async () => {
    server.script({
      events: chatStream([
        { thinking: 'hm, 日本' },
        { text: 'Looking.' },
        { call: 'web__fetch', id: 'call_a', args: { url: 'http://ü' } },
        { call: 'web__fetch', id: 'call_b', args: {}, raw: '' },
      ]),
    });
    const { message, joined, frames } = await bench
      .run({ model: MODEL, tools: [look] })
      .then((s) => ({ message: s.message, joined: s.joined('thinking_delta'), frames: s.frames }));
    expect(joined).toBe('hm, 日本');
    expect(message).toMatchObject({ stop_reason: 'function_call', native_stop_reason: 'tool_calls' });
    expect(message.content).toEqual([
      { type: 'thinking', text: 'hm, 日本' },
      { type: 'text', text: 'Looking.' },
      { type: 'function_call', id: 'call_a', function_id: 'web::fetch', arguments: { url: 'http://ü' } },
      { type: 'function_call', id: 'call_b', function_id: 'web::fetch', arguments: {} },
    ]);
    expect(JSON.stringify(frames)).not.toContain('web__fetch');
  });

  it('knows the calls of servers that do not follow the format to the letter', async () => {
    const chunk = (delta: object, finish: string | null = null): { data: unknown } => ({
      data: { id: 'x', choices: [{ index: 0, delta, finish_reason: finish }] },
    });
    server.script({
      events: [
        chunk({
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'web__fetch', arguments: '{"url":"1"}' } }],
        }),
        chunk({ tool_calls: [{ index: 0, id: 'c2', type: 'function', function: { name: 'web__fetch', arguments: { url: '2' } } }] }),
        chunk({ content: '', tool_calls: [] }, 'stop'),
      ],
    });
    const { message } = await bench.run({ model: MODEL, tools: [look] });
    expect(message.stop_reason).toBe('function_call');
    expect(message.content).toMatchObject([
      { id: 'c1', arguments: { url: '1' } },
      { id: 'c2', arguments: { url: '2' } },
    ]);
  });

  it('keeps a call that a length stop cut off as text', async () => {
    server.script({ events: chatStream([{ call: 'web__fetch', id: 'c1', args: {}, raw: '{"url":"htt' }], { finish: 'length' }) });
    const { message } = await bench.run({ model: MODEL, tools: [look] });
    expect(message.stop_reason).toBe('length');
    expect(message.content).toEqual([{ type: 'function_call', id: 'c1', function_id: 'web::fetch', arguments: '{"url":"htt' }]);
  });

  it('keeps a refusal as text and says so', async () => {
    server.script({
      events: [
        { data: { id: 'x', choices: [{ index: 0, delta: { refusal: 'I cannot.' }, finish_reason: null }] } },
        ...chatStream([]).slice(1),
      ],
    });
    const { message } = await bench.run({ model: MODEL });
    expect(message).toMatchObject({
      stop_reason: 'end',
      content: [{ type: 'text', text: 'I cannot.' }],
      warnings: ['the model refused to answer'],
    });
  });

  it('fails when the answer was filtered', async () => {
    server.script({ events: chatStream([{ text: 'some' }], { finish: 'content_filter' }) });
    const { message, ok } = await bench.run({ model: MODEL });
    expect(ok).toBe(false);
    expect(message).toMatchObject({ stop_reason: 'error', error_kind: 'permanent', content: [{ text: 'some' }] });
  });

  it('is complete when a server ends without [DONE] and without counts', async () => {
    server.script({ events: chatStream([{ text: 'ok' }], { usage: null, done: false }) });
    expect((await bench.run({ model: MODEL })).message).toMatchObject({ stop_reason: 'end', content: [{ text: 'ok' }] });
  });

  it('is complete when a server keeps a finished answer open', async () => {
    server.script({ events: chatStream([{ text: 'ok' }], { usage: null, done: false }), ending: 'stall' });
    expect((await bench.run({ model: MODEL })).message).toMatchObject({ stop_reason: 'end', content: [{ text: 'ok' }] });
    expect(await server.requests[0]?.closed).toBe('cancelled');
  });

  it('aborts the request when the reader closes', async () => {
    server.script({ events: chatStream([{ text: 'half' }], { finish: null }), ending: 'stall' });
    const { reader, result: ended } = await bench.open({ model: MODEL });
    await readTo(reader, 'text_delta');
    reader.close();
    await ended;
    expect(await server.requests[0]?.closed).toBe('cancelled');
  });

  it('sends options, limits, effort and formats in the words of the server', async () => {
    server.script(
      { events: chatStream([{ text: '{}' }]) },
      { events: chatStream([{ text: '{}' }]) },
      { events: chatStream([{ text: '{}' }]) },
    );
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'] };
    await bench.run({
      model: MODEL,
      max_output_tokens: 77,
      thinking_level: 'high',
      provider_options: { temperature: 0.5, messages: 'no' },
      response_format: { type: 'json', schema },
    });
    expect(server.lastBody).toMatchObject({
      max_tokens: 77,
      temperature: 0.5,
      reasoning_effort: 'high',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', strict: true, schema: { properties: { n: { type: 'integer' } }, additionalProperties: false } },
      },
    });
    expect(JSON.stringify(server.lastBody)).not.toContain('minimum');
    await bench.run({ model: MODEL, response_format: { type: 'json', schema: { type: 'object', additionalProperties: true } } });
    expect(server.lastBody).toMatchObject({
      response_format: { json_schema: { strict: false, schema: { type: 'object', additionalProperties: true } } },
    });
    await bench.run({ model: MODEL, response_format: { type: 'json' } });
    expect(server.lastBody).toMatchObject({
      response_format: { type: 'json_object' },
      messages: [{ role: 'system', content: expect.stringContaining('JSON') }, {}],
    });
    expect(server.requests.map((request) => request.violation)).toEqual([null, null, null]);
  });

  it('puts images of a result behind all results, and says what is an error', async () => {
    server.script({ events: chatStream([{ text: 'ok' }]) });
    const call = (id: string): { type: 'function_call'; id: string; function_id: string; arguments: object } => ({
      type: 'function_call',
      id,
      function_id: 'web::fetch',
      arguments: {},
    });
    await bench.run({
      model: MODEL,
      messages: [
        user('go'),
        assistant([call('a'), call('b')] as never),
        result('a', '', { content: [{ type: 'image', mime: 'image/png', data: 'AAAA' }] }),
        result('b', 'not found', { is_error: true }),
      ],
    });
    expect(server.requests[0]?.violation).toBeNull();
    expect(server.lastBody['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: null },
      { role: 'tool', tool_call_id: 'a' },
      { role: 'tool', tool_call_id: 'b', content: 'Error: not found' },
      { role: 'user', content: [{ type: 'text' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
    ]);
  });

  it('needs no key for a server of its own, and lists its models', async () => {
    const { credential } = bench;
    bench.credential = null;
    server.script(
      { events: chatStream([{ text: 'ok' }]) },
      {
        body: {
          object: 'list',
          data: [
            { id: 'a', object: 'model', max_model_len: 32_768 },
            { id: 'b', object: 'model' },
          ],
        },
      },
    );
    expect((await bench.run({ model: MODEL })).ok).toBe(true);
    await bench.app.get(OpenAiProvider).register(bench.bus);
    await expect(bench.bus.trigger({ function_id: 'provider::openai::refresh_models', payload: {} })).resolves.toEqual({
      ok: true,
      count: 2,
    });
    expect(bench.calls.reconcile[0]).toMatchObject({
      provider: 'openai',
      token: 'tok_1',
      models: [
        { id: 'a', context_window: 32_768 },
        { id: 'b', context_window: 8_192 },
      ],
    });
    bench.credential = credential;
  });

  it('reads content that comes as a list of parts', async () => {
    const chunk = (content: unknown): { data: unknown } => ({
      data: { id: 'x', choices: [{ index: 0, delta: { content }, finish_reason: null }] },
    });
    server.script({
      events: [chunk(''), chunk([{ type: 'text', text: 'a' }, { type: 'thinking' }]), chunk('b'), ...chatStream([]).slice(1)],
    });
    expect((await bench.run({ model: MODEL })).message.content).toEqual([{ type: 'text', text: 'ab' }]);
  });
});

describe('requests to OpenAI itself', () => {
  const run = (model: string, over: Partial<ProviderStreamRequest> = {}): VendorRun => ({
    request: { writer_ref: { channel_id: 'c', access_key: 'k', direction: 'write' }, model, messages: [user('hi')], ...over },
    model: OPENAI_MODELS.find((row) => row.id === model),
    api_url: 'https://api.openai.com/v1',
    credential: 'k',
    max_tokens: 32_000,
    names: new ToolNames([], []),
    draft: new AssistantDraft({ provider: 'openai', model, timestamp: 0, send: () => undefined }),
    signal: new AbortController().signal,
    cancel: () => undefined,
    ping: () => undefined,
  });

  it('use Responses for models that reason, chat completions for others', () => {
    expect(['gpt-5', 'o4-mini', 'gpt-5.4', 'gpt-5.9-new', 'o9'].map((model) => apiOf(run(model)))).toEqual(Array(5).fill('responses'));
    expect(['gpt-4o', 'gpt-4.1', 'gpt-5-chat-latest'].map((model) => apiOf(run(model)))).toEqual(Array(3).fill('chat'));
    expect(apiOf(run('gpt-5', { provider_options: { api: 'chat' } }))).toBe('chat');
  });

  it('limit output by the newer name, within what the model can', () => {
    const body = chatBody(run('gpt-4o', { thinking_level: 'high' }));
    expect(body).toMatchObject({ max_completion_tokens: 16_384 });
    expect(body).not.toHaveProperty('max_tokens');
    expect(body).not.toHaveProperty('reasoning_effort');
  });

  it('ask for the nearest effort that the model knows', () => {
    const effort = (model: string, thinking_level: ThinkingLevel): unknown =>
      responsesBody(run(model, { thinking_level })).reasoning?.effort;
    expect([
      effort('gpt-5', 'minimal'),
      effort('o3', 'minimal'),
      effort('gpt-5.4', 'minimal'),
      effort('gpt-5', 'xhigh'),
      effort('gpt-5.2', 'xhigh'),
      effort('gpt-5.9', 'minimal'),
    ]).toEqual(['minimal', 'low', 'low', 'high', 'xhigh', 'low']);
  });
});
