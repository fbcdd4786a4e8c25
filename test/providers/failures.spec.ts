import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AnthropicProviderModule, OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { ProviderBench, readAll, readTo, type Streamed } from '../support/provider-bench.js';
import { anthropicStream, chatStream, responsesStream, type Said } from '../support/vendor-scripts.js';
import { type SseEvent, type VendorAnswer, VendorServer } from '../support/vendor-server.js';

const KEY = 'sk-ant-api03-S3cretValue_0123456789-abcdefXYZ';
const anthropicError = (type: string, message: string): object => ({ type: 'error', error: { type, message }, request_id: 'req_1' });
const openaiError = (code: string, message: string): object => ({ error: { message, type: 'invalid_request_error', param: null, code } });

const vendors = [
  {
    name: 'anthropic',
    module: AnthropicProviderModule,
    path: '',
    model: 'claude-sonnet-4-5',
    options: undefined,
    events: (said: Said[], cut = false): SseEvent[] => anthropicStream(said, { cut }),
    error: anthropicError,
    overflow: 'prompt is too long: 208310 tokens > 200000 maximum',
    tail: 2, // the last piece of the arguments and the end of the block
    midStream: { event: 'error', data: anthropicError('overloaded_error', 'Overloaded') },
  },
  {
    name: 'openai',
    module: OpenAiProviderModule,
    path: '/v1',
    model: 'local-model',
    options: { api: 'chat' },
    events: (said: Said[], cut = false): SseEvent[] => chatStream(said, cut ? { finish: null } : {}),
    error: openaiError,
    overflow: "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
    tail: 1,
    midStream: { data: { error: { message: 'Overloaded', code: 502 } } },
  },
  {
    name: 'openai',
    module: OpenAiProviderModule,
    path: '/v1',
    model: 'gpt-5',
    options: { api: 'responses' },
    events: (said: Said[], cut = false): SseEvent[] => responsesStream(said, { cut }),
    error: openaiError,
    overflow: 'Your input exceeds the context window of this model.',
    tail: 3,
    midStream: { event: 'error', data: { type: 'error', code: 'server_error', message: 'Overloaded', param: null } },
  },
];

describe.each(vendors)('failures of $name ($options.api)', (vendor) => {
  let server: VendorServer;
  let bench: ProviderBench;
  beforeAll(async () => {
    server = await VendorServer.start();
    bench = await ProviderBench.start(vendor.name, vendor.module, server, vendor.path);
    bench.credential = KEY;
  });
  beforeEach(() => server.reset());
  afterAll(async () => {
    await bench.close();
    await server.close();
  });
  const run = (...answers: VendorAnswer[]): Promise<Streamed> => {
    server.script(...answers);
    return bench.run({ model: vendor.model, provider_options: vendor.options });
  };

  it.each([
    [400, 'invalid', 'permanent'],
    [401, 'bad key', 'auth_expired'],
    [403, 'no access', 'auth_expired'],
    [404, 'no such model', 'permanent'],
    [408, 'slow', 'transient'],
    [413, 'too large', 'context_overflow'],
    [429, 'too fast', 'rate_limited'],
    [500, 'oops', 'transient'],
    [502, 'gateway', 'transient'],
    [503, 'later', 'transient'],
    [529, 'overloaded', 'transient'],
  ])('C14 answers %i with an error frame of its kind and asks once', async (status, message, kind) => {
    const streamed = await run({ status, body: vendor.error('some_error', message) });
    expect(streamed.types).toEqual(['error']);
    expect(streamed.ok).toBe(false);
    expect(streamed.message).toMatchObject({
      stop_reason: 'error',
      error_kind: kind,
      content: [],
      error_message: expect.stringContaining(message),
    });
    expect(streamed.message.error_message).toContain(String(status));
    expect(server.requests).toHaveLength(1);
  });

  it('knows a full context by the words of the vendor', async () => {
    const { message } = await run({ status: 400, body: vendor.error('invalid_request_error', vendor.overflow) });
    expect(message.error_kind).toBe('context_overflow');
  });

  it.each([
    [{ 'retry-after': '2' }, 2_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '1234', 'retry-after': '9' }, 1_234],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('C22 hands on how long to wait: %o', async (headers, wait) => {
    const streamed = await run({
      status: 429,
      headers: headers as { [name: string]: string },
      body: vendor.error('rate_limit_error', 'slow down'),
    });
    expect(streamed.retryAfterMs).toBe(wait);
  });

  it('hands on a date to wait for', async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    const { retryAfterMs } = await run({ status: 503, headers: { 'retry-after': date }, body: vendor.error('x', 'y') });
    expect(retryAfterMs).toBeGreaterThan(50_000);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  it('C55 never shows the key, whole or in part, whatever the vendor echoes', async () => {
    const echoes = [
      `invalid x-api-key: ${KEY}`,
      `key ${KEY.slice(0, 20)}... is unknown`,
      `ends with ${KEY.slice(-12)}`,
      `Incorrect API key provided: sk-ant-a*****************dXYZ.`,
      `Authorization: Bearer ${KEY}`,
      `?key=${encodeURIComponent(KEY)}`,
      Buffer.from(KEY).toString('base64'),
    ];
    for (const echo of echoes) {
      const { frames, message } = await run({ status: 401, body: vendor.error('authentication_error', echo) });
      const text = JSON.stringify(frames);
      expect(message.error_kind).toBe('auth_expired');
      expect(text).toContain('[redacted]');
      for (let at = 0; at + 8 <= KEY.length; at += 1) expect(text).not.toContain(KEY.slice(at, at + 8));
    }
    expect(server.requests[0]?.headers['x-api-key'] ?? server.requests[0]?.headers.authorization).toContain(KEY);
  });

  it('reads error bodies of other forms', async () => {
    expect((await run({ status: 502, body: '<html><body><h1>Bad Gateway</h1> nginx</body></html>' })).message).toMatchObject({
      error_kind: 'transient',
      error_message: expect.stringContaining('Bad Gateway'),
    });
    expect((await run({ status: 404, body: { error: "model 'x' not found" } })).message).toMatchObject({
      error_kind: 'permanent',
      error_message: expect.stringContaining("model 'x' not found"),
    });
    expect((await run({ status: 422, body: { detail: 'field required' } })).message.error_message).toContain('field required');
  });

  it('ends with an error and what was streamed when the vendor breaks off', async () => {
    const streamed = await run({ events: [...vendor.events([{ text: 'half of ' }], true), vendor.midStream] });
    expect(streamed.types).toContain('start');
    expect(streamed.message).toMatchObject({
      stop_reason: 'error',
      error_kind: 'transient',
      content: [{ type: 'text', text: 'half of ' }],
      error_message: expect.stringContaining('Overloaded'),
    });
  });

  it('never takes the end of a body for the end of an answer', async () => {
    const text = await run({ events: vendor.events([{ text: 'half' }], true) });
    expect(text.message).toMatchObject({ stop_reason: 'error', error_kind: 'transient', content: [{ text: 'half' }] });
    const nothing = await run({ events: [] });
    expect(nothing.types).toEqual(['error']);
    expect(nothing.message.error_kind).toBe('transient');
    const reset = await run({ events: vendor.events([{ text: 'half' }], true), ending: 'reset' });
    expect(reset.message).toMatchObject({ stop_reason: 'error', error_kind: 'transient' });
  });

  it('takes a broken event for a passing fault', async () => {
    const { message } = await run({
      events: [...vendor.events([{ text: 'half' }], true), { event: 'content_block_delta', data: '{"type":"content_bl' }],
    });
    expect(message).toMatchObject({ stop_reason: 'error', error_kind: 'transient' });
  });

  it('leaves a call out that was not finished when the stream broke', async () => {
    const events = vendor.events([{ text: 'look' }, { call: 'f', id: 'c1', args: { a: 'long enough to be cut in the middle' } }], true);
    const { message, types } = await run({ events: events.slice(0, -vendor.tail) });
    expect(types).toContain('functioncall_delta');
    expect(message.content).toEqual([{ type: 'text', text: 'look' }]);
    expect(types).not.toContain('functioncall_end');
  });

  it('C24 says what it could not reach', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    const { apiUrl } = bench;
    bench.apiUrl = `http://127.0.0.1:${port}${vendor.path}`;
    const { message } = await bench.run({ model: vendor.model, provider_options: vendor.options });
    bench.apiUrl = apiUrl;
    expect(message).toMatchObject({ error_kind: 'transient', error_message: expect.stringMatching(/ECONNREFUSED.*no proxy is used/) });
  });

  it('ends as aborted when the caller gives up and the channel is open', async () => {
    server.script({ events: vendor.events([{ text: 'half of it' }], true), ending: 'stall' });
    const stop = new AbortController();
    const { reader, result } = await bench.open({ model: vendor.model, provider_options: vendor.options }, stop.signal);
    await readTo(reader, 'text_delta');
    result.catch(() => undefined);
    stop.abort();
    const frames = await readAll(reader);
    expect(frames.at(-1)).toMatchObject({ type: 'done', message: { stop_reason: 'aborted' } });
    expect(await server.requests[0]?.closed).toBe('cancelled');
  });

  it('C21 asks for nothing when the reader is gone before it starts', async () => {
    const gone = await bench.open({ model: vendor.model, provider_options: vendor.options });
    gone.reader.close();
    await expect(gone.result).rejects.toThrow('NOT_FOUND');
    const { reader, result } = await bench.open({ model: vendor.model, provider_options: vendor.options });
    bench.whileResolving = () => reader.close();
    await result;
    bench.whileResolving = undefined;
    expect(server.requests).toHaveLength(0);
  });

  it('aborts a request that has no answer yet', async () => {
    server.script({ ending: 'stall', after: new Promise<void>(() => undefined) });
    const { reader, result } = await bench.open({ model: vendor.model, provider_options: vendor.options });
    await server.received(1);
    reader.close();
    await result;
    expect(await server.requests[0]?.closed).toBe('cancelled');
  });

  it('says which key is missing', async () => {
    bench.credential = null;
    const { apiUrl } = bench;
    bench.apiUrl = '';
    const { message } = await bench.run({ model: vendor.model, provider_options: vendor.options });
    Object.assign(bench, { credential: KEY, apiUrl });
    expect(message).toMatchObject({ error_kind: 'auth_expired', error_message: expect.stringMatching(/set (ANTHROPIC|OPENAI)_API_KEY/) });
    expect(server.requests).toHaveLength(0);
  });

  it.each([
    { delivery: 'bytes' as const, newline: '\n' as const },
    { delivery: 'bytes' as const, newline: '\r\n' as const },
    { delivery: { split: 3 }, newline: '\r\n' as const },
  ])('C20 reads text and arguments that arrive in pieces: %o', async (how) => {
    const said: Said[] = [
      { text: 'こんにちは 👩‍👩‍👧 ünïcödé\r\n\u2028 ' },
      { call: 'f', id: 'c1', args: { clé: ['日本語', '🦊', '\u0000"\\'], n: 1 } },
    ];
    const events = vendor.events(said).flatMap((event): SseEvent[] => [{ comment: 'keep alive 日本' }, event]);
    const streamed = await run({ events, ...how });
    expect(streamed.joined('text_delta')).toBe((said[0] as { text: string }).text);
    expect(streamed.message.content).toEqual([
      { type: 'text', text: (said[0] as { text: string }).text },
      { type: 'function_call', id: 'c1', function_id: 'f', arguments: (said[1] as { args: object }).args },
    ]);
    expect(JSON.stringify(streamed.frames)).not.toContain('\uFFFD');
  });

  it('keeps arguments that are not JSON as text, and takes none for an empty object', async () => {
    const { message } = await run({
      events: vendor.events([
        { call: 'f', id: 'a', args: 0, raw: '{"x": ' },
        { call: 'f', id: 'b', args: 0, raw: '' },
        { call: 'f', id: 'c', args: 0, raw: '"{\\"y\\":1}"' },
      ]),
    });
    expect(message.content).toMatchObject([{ arguments: '{"x": ' }, { arguments: {} }, { arguments: '{"y":1}' }]);
    expect(message.stop_reason).toBe('function_call');
  });

  it('C17 leaves blank text out of the message', async () => {
    const { message } = await run({ events: vendor.events([{ text: ' \n ' }]) });
    expect(message.content).toEqual([]);
  });

  it('costs the same for each delta, however long the answer is', async () => {
    const time = async (length: number): Promise<number> => {
      const text = 'word '.repeat(length * 1.4);
      const started = performance.now();
      const streamed = await run({ events: vendor.events([{ text }]) });
      expect(streamed.joined('text_delta')).toBe(text);
      expect(streamed.frames.filter((frame) => 'partial' in frame).length).toBeLessThan(8);
      return performance.now() - started;
    };
    await time(2_000);
    const short = Math.min(await time(2_000), await time(2_000), await time(2_000));
    const long = Math.min(await time(16_000), await time(16_000));
    expect(long / short).toBeLessThan(20);
  });
});

describe('credit that is used up', () => {
  it('is not a rate limit', async () => {
    const server = await VendorServer.start();
    const bench = await ProviderBench.start('openai', OpenAiProviderModule, server, '/v1');
    server.script({ status: 429, body: openaiError('insufficient_quota', 'You exceeded your current quota, please check your plan.') });
    expect((await bench.run({ model: 'gpt-4o' })).message.error_kind).toBe('permanent');
    await bench.close();
    await server.close();
  });
});
