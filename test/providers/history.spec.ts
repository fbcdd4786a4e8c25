import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AgentMessage, AssistantMessage, ContentBlock } from '#libs/contracts';
import { AnthropicProviderModule, OpenAiProviderModule } from '../../libs/local/src/providers/index.js';
import { assistant, ProviderBench, result, user } from '../support/provider-bench.js';
import { anthropicStream, chatStream, responsesStream } from '../support/vendor-scripts.js';
import { type SseEvent, VendorServer } from '../support/vendor-server.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const image = (mime = 'image/png', data = PNG): ContentBlock => ({ type: 'image', mime, data });
const call = (id: string, function_id = 'shell::exec', args: unknown = { a: 1 }): ContentBlock => ({
  type: 'function_call',
  id,
  function_id,
  arguments: args as never,
});
const thought = (signature?: string): ContentBlock => ({ type: 'thinking', text: 'hm', ...(signature === undefined ? {} : { signature }) });
const opaque: ContentBlock = { type: 'redacted_thinking', data: 'OPAQUE' };
const custom = (content: ContentBlock[]): AgentMessage => ({ role: 'custom', custom_type: 'wake', content, timestamp: 1 });
const said = (content: ContentBlock[]): AgentMessage => ({ role: 'user', content, timestamp: 1 });

const LONG = `a-very::${'long::'.repeat(30)}name`;
/** Histories that real sessions have held. */
const HISTORIES: { [name: string]: AgentMessage[] } = {
  'nothing at all': [],
  'one message': [user('hi')],
  'a blank message only': [user('  \n')],
  'an answer at the end': [user('hi'), assistant([text('hello')])],
  'an answer at the start': [assistant([text('hello')]), user('hi')],
  'an empty answer': [user('hi'), assistant([]), user('again')],
  'blank answers': [user('hi'), assistant([text(''), text(' \n')]), user('again')],
  'two users, two answers': [user('a'), user('b'), assistant([text('c')]), assistant([text('d')]), user('e')],
  'a call and its result': [user('go'), assistant([text('ok'), call('c1')]), result('c1', 'done')],
  'an empty result': [user('go'), assistant([call('c1')]), result('c1', '')],
  'a blank result': [user('go'), assistant([call('c1')]), result('c1', ' \n ')],
  'two calls, results in another order with a user between': [
    user('go'),
    assistant([call('c1'), call('c2')]),
    result('c2', 'b'),
    user('hurry'),
    result('c1', 'a'),
  ],
  'an orphaned call at the end': [user('go'), assistant([call('c1')])],
  'an orphaned call in the middle': [user('go'), assistant([call('c1'), call('c2')]), result('c1', 'a'), user('on')],
  'a result without a call': [user('go'), result('zz', 'lost'), user('on')],
  'a result before its call': [user('go'), result('c1', 'early'), assistant([call('c1')]), user('on')],
  'two results of one call': [user('go'), assistant([call('c1')]), result('c1', 'a'), result('c1', 'b')],
  'a call id used in every turn': [
    user('go'),
    assistant([call('call_0')]),
    result('call_0', 'a'),
    assistant([call('call_0')]),
    result('call_0', 'b'),
    user('on'),
  ],
  'a call id used twice in a message': [user('go'), assistant([call('c'), call('c')]), result('c', 'a'), result('c', 'b')],
  'empty call ids': [user('go'), assistant([call(''), call('')]), result('', 'a')],
  'call ids that no vendor takes': [
    user('go'),
    assistant([call('t_1:3/ü'), call('x'.repeat(90))]),
    result('t_1:3/ü', 'a'),
    result('x'.repeat(90), 'b'),
  ],
  'results inside a user message': [
    user('go'),
    assistant([call('c1')]),
    said([{ type: 'function_result', function_call_id: 'c1', content: [text('in line')] }, text('and on')]),
  ],
  'names of all kinds': [
    user('go'),
    assistant([call('c1', LONG), call('c2', 'a__b'), call('c3', 'ünï::x.y'), call('c4', '')]),
    result('c1', 'a'),
    result('c2', 'b'),
    result('c3', 'c'),
    result('c4', 'd'),
  ],
  'arguments of all kinds': [
    user('go'),
    assistant([call('c1', 'f', '{"cut'), call('c2', 'f', [1]), call('c3', 'f', null), call('c4', 'f', 7)]),
    ...['c1', 'c2', 'c3', 'c4'].map((id) => result(id, 'r')),
  ],
  'thinking of every kind': [
    user('go'),
    assistant([thought('SIG'), opaque, text('a'), thought('S2'), call('c1')]),
    result('c1', 'x'),
    assistant([thought(), text('b')]),
    user('on'),
    assistant([thought('S3')]),
    user('on'),
  ],
  'thinking of a stopped answer': [user('go'), assistant([thought('SIG'), text('half')], { stop_reason: 'aborted' }), user('on')],
  'thinking of a failed answer with a call': [
    user('go'),
    assistant([thought('SIG'), call('c1')], { stop_reason: 'error', error_kind: 'transient' }),
    user('on'),
  ],
  'thinking at the end of an answer': [user('go'), assistant([text('a'), thought('SIG')]), user('on')],
  'images everywhere': [
    said([text('see'), image(), image('image/bmp')]),
    assistant([call('c1')]),
    result('c1', '', { content: [image('image/JPEG'), text('cap')] }),
    custom([image()]),
  ],
  'an image as a data URL': [said([image('image/png', `data:image/png;base64,${PNG}`)])],
  'an image only result': [user('go'), assistant([call('c1')]), result('c1', '', { content: [image()] })],
  'custom messages': [user('go'), custom([text('woken')]), assistant([text('a')]), custom([]), custom([text('again')])],
  'a custom message after an answer': [user('go'), assistant([text('a')]), custom([text('note')])],
  'halves of surrogate pairs': [user('a \ud83d b'), assistant([text('\udc00'), call('c1', 'f', { s: '\ud83d' })]), result('c1', '\ud800')],
  'an error result': [user('go'), assistant([call('c1')]), result('c1', 'boom', { is_error: true })],
};

const vendors = [
  {
    name: 'anthropic',
    module: AnthropicProviderModule,
    path: '',
    model: 'claude-sonnet-4-5',
    options: undefined,
    answer: (): SseEvent[] => anthropicStream([{ text: 'ok' }]),
  },
  {
    name: 'openai',
    module: OpenAiProviderModule,
    path: '/v1',
    model: 'gpt-4o',
    options: { api: 'chat' },
    answer: (): SseEvent[] => chatStream([{ text: 'ok' }]),
  },
  {
    name: 'openai',
    module: OpenAiProviderModule,
    path: '/v1',
    model: 'gpt-5',
    options: { api: 'responses' },
    answer: (): SseEvent[] => responsesStream([{ text: 'ok' }]),
  },
];

describe.each(vendors)('the body for $name ($options.api)', (vendor) => {
  let server: VendorServer;
  let bench: ProviderBench;
  beforeAll(async () => {
    server = await VendorServer.start();
    bench = await ProviderBench.start(vendor.name, vendor.module, server, vendor.path);
  });
  beforeEach(() => server.reset());
  afterAll(async () => {
    await bench.close();
    await server.close();
  });
  const own = (messages: AgentMessage[]): AgentMessage[] =>
    messages.map((message) => (message.role === 'assistant' ? { ...message, provider: vendor.name, model: vendor.model } : message));
  const send = async (messages: AgentMessage[], over: object = {}): Promise<string | null> => {
    server.script({ events: vendor.answer() });
    await bench.run({ model: vendor.model, messages, provider_options: vendor.options, ...over });
    return server.requests.at(-1)?.violation ?? null;
  };

  it.each(Object.keys(HISTORIES))('C15 C16 C17 C19 is valid for %s', async (name) => {
    const messages = HISTORIES[name] ?? [];
    for (const thinking_level of [undefined, 'high'] as const) {
      expect(await send(messages, { thinking_level })).toBeNull();
      expect(await send(own(messages), { thinking_level, tools: [{ name: 'shell::exec', description: '', parameters: null }] })).toBeNull();
    }
  });

  it('is valid for any history', async () => {
    const ids = fc.constantFrom('c1', 'c2', 'call:3', '');
    const words = fc.constantFrom('', ' ', 'text', 'é \ud83d', 'x'.repeat(50));
    const block: fc.Arbitrary<ContentBlock> = fc.oneof(
      words.map(text),
      fc.constant(image()),
      fc.constant(image('image/bmp')),
      fc.constantFrom(thought(), thought('S'), opaque),
      fc.tuple(ids, fc.constantFrom('a::b', 'f', LONG), fc.constantFrom({}, '{"cut', [1])).map(([id, name, args]) => call(id, name, args)),
      fc
        .tuple(ids, words)
        .map(([function_call_id, word]): ContentBlock => ({ type: 'function_result', function_call_id, content: [text(word)] })),
    );
    const blocks = fc.array(block, { maxLength: 4 });
    const stops = fc.constantFrom<AssistantMessage['stop_reason']>('end', 'function_call', 'aborted', 'length');
    const message: fc.Arbitrary<AgentMessage> = fc.oneof(
      blocks.map(said),
      blocks.map(custom),
      fc.tuple(blocks, stops).map(([content, stop_reason]) => assistant(content, { stop_reason })),
      fc.tuple(ids, words).map(([id, word]) => result(id, word)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 9 }), fc.constantFrom(undefined, 'low'), async (messages, thinking_level) => {
        expect(await send(own(messages), { thinking_level })).toBeNull();
        server.reset();
      }),
      { numRuns: 150 },
    );
  });

  it('C18 keeps images within what the vendor takes, the newest first', async () => {
    const big = (size: number): ContentBlock => image('image/png', 'A'.repeat(size));
    expect(await send([said([big(6 * 1_048_576 * (vendor.name === 'openai' ? 4 : 1))])])).toBeNull();
    expect(JSON.stringify(server.lastBody)).toContain('left out');
    const many = Array.from({ length: 12 }, (_, at) => said([text(`n${at}`), big(4 * 1_048_576)]));
    expect(await send(many)).toBeNull();
    const body = JSON.stringify(server.lastBody);
    expect(body.length).toBeLessThan(42 * 1_048_576);
    expect(body.indexOf('left out')).toBeLessThan(body.indexOf('AAAA'));
    expect(await send([user('plain text')])).toBeNull();
  });

  it('tells a model that cannot see what was left out', async () => {
    const model_meta = { id: vendor.model, provider: vendor.name, context_window: 1_000, max_output_tokens: 100, supports_vision: false };
    expect(await send([said([image()])], { model_meta })).toBeNull();
    expect(JSON.stringify(server.lastBody)).toContain('does not take images');
    expect(JSON.stringify(server.lastBody)).not.toContain(PNG);
  });
});
