import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AgentMessage, AssistantMessage } from '#libs/contracts';
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

const shellExec = {
  name: 'shell::exec',
  description: 'Runs a command.',
  parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
};

describe('a Messages stream', () => {
  it('gives text as frames and one terminal message', async () => {
    server.script({ events: anthropicStream([{ text: 'Hello, wörld 👋🏽 日本語' }]) });
    const streamed = await bench.run({ model: MODEL });
    expect(streamed.ok).toBe(true);
    expect(streamed.types.filter((type) => type !== 'text_delta')).toEqual([
      'start',
      'usage',
      'ping',
      'text_start',
      'text_end',
      'usage',
      'stop',
      'done',
    ]);
    expect(streamed.joined('text_delta')).toBe('Hello, wörld 👋🏽 日本語');
    expect(streamed.message).toMatchObject({
      role: 'assistant',
      provider: 'anthropic',
      model: MODEL,
      stop_reason: 'end',
      native_stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'Hello, wörld 👋🏽 日本語' }],
      usage: { input: 11, output: 42 },
    });
    const withPartial = streamed.frames.filter((frame) => 'partial' in frame).map((frame) => frame.type);
    expect(new Set(withPartial)).toEqual(new Set(['start', 'text_start', 'text_end']));
  });

  it('gives calls under their real ids', async () => {
    server.script({
      events: anthropicStream([{ text: 'Let me look.' }, { call: 'shell__exec', id: 'toolu_1', args: { command: 'ls "ü 🦊"' } }]),
    });
    const { message, frames } = await bench.run({ model: MODEL, tools: [shellExec] });
    expect(server.requests[0]?.violation).toBeNull();
    expect(message.stop_reason).toBe('function_call');
    expect(message.content[1]).toEqual({
      type: 'function_call',
      id: 'toolu_1',
      function_id: 'shell::exec',
      arguments: { command: 'ls "ü 🦊"' },
    });
    expect(frames.find((frame) => frame.type === 'functioncall_start')).toMatchObject({
      id: 'toolu_1',
      partial: { content: [{ type: 'text' }, { type: 'function_call', function_id: 'shell::exec', arguments: {} }] },
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
    await bench.run({
      model: MODEL,
      tools: [shellExec],
      system_prompt: 'Be brief.',
      messages: [user('go'), assistant([call]), result('toolu_1', 'a.txt')],
    });
    expect(server.requests[0]?.violation).toBeNull();
    expect(server.lastBody).toMatchObject({ system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] });
  });

  it('registers itself with its models', async () => {
    await bench.app.get(AnthropicProvider).register(bench.bus);
    expect(bench.calls.register[0]).toMatchObject({
      id: 'anthropic',
      credential_env_var: 'ANTHROPIC_API_KEY',
      defaults: { api_url: 'https://api.anthropic.com' },
    });
  });

  it('gives thinking with its signature and thinking that cannot be read', async () => {
    server.script({
      events: anthropicStream([
        { thinking: 'let me see 日本', signature: 'SIG==' },
        { redacted: 'OPAQUE' },
        { thinking: '', signature: 'SIG2' },
        { text: 'so' },
      ]),
    });
    const streamed = await bench.run({ model: MODEL, thinking_level: 'medium' });
    expect(server.lastBody).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 10_240 }, max_tokens: 64_000 });
    expect(streamed.joined('thinking_delta')).toBe('let me see 日本');
    expect(streamed.message.content).toEqual([
      { type: 'thinking', text: 'let me see 日本', signature: 'SIG==' },
      { type: 'redacted_thinking', data: 'OPAQUE' },
      { type: 'thinking', text: '', signature: 'SIG2' },
      { type: 'text', text: 'so' },
    ]);
  });

  it('C16 sends signed thinking back byte for byte, to the model that wrote it only', async () => {
    const said = [
      { thinking: ' a\u2028 ', signature: 'S+/=' },
      { redacted: 'OPAQUE' },
      { call: 'shell__exec', id: 'toolu_1', args: { command: 'ls' } },
    ];
    server.script(
      { events: anthropicStream(said) },
      { events: anthropicStream([{ text: 'ok' }]) },
      { events: anthropicStream([{ text: 'ok' }]) },
    );
    const { message } = await bench.run({ model: MODEL, thinking_level: 'low', tools: [shellExec] });
    const messages = [user('go'), message, result('toolu_1', 'a.txt')];
    await bench.run({ model: MODEL, thinking_level: 'low', tools: [shellExec], messages });
    expect((server.lastBody['messages'] as unknown[])[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: ' a\u2028 ', signature: 'S+/=' },
        { type: 'redacted_thinking', data: 'OPAQUE' },
        { type: 'tool_use', id: 'toolu_1', name: 'shell__exec', input: { command: 'ls' } },
      ],
    });
    const other = await bench.run({ model: 'claude-opus-4-5', thinking_level: 'low', tools: [shellExec], messages });
    expect((server.lastBody['messages'] as unknown[])[1]).toMatchObject({ content: [{ type: 'tool_use' }] });
    expect(server.lastBody['thinking']).toBeUndefined();
    expect(other.message.warnings?.[0]).toContain('thinking is off');
    expect(server.requests.map((request) => request.violation)).toEqual([null, null, null]);
  });

  it('asks each model to think in its own way', async () => {
    const asked = async (model: string, level: 'minimal' | 'low' | 'high' | 'xhigh', over: object = {}): Promise<unknown> => {
      server.script({ events: anthropicStream([{ text: 'ok' }]) });
      await bench.run({ model, thinking_level: level, ...over });
      return [server.lastBody['thinking'], server.lastBody['output_config']];
    };
    const adaptive = { type: 'adaptive', display: 'summarized' };
    expect(await asked('claude-opus-4-8', 'xhigh')).toEqual([adaptive, { effort: 'xhigh' }]);
    expect(await asked('claude-opus-4-6', 'xhigh')).toEqual([adaptive, { effort: 'max' }]);
    expect(await asked('claude-sonnet-5-5', 'minimal')).toEqual([adaptive, { effort: 'low' }]);
    expect(await asked('claude-new-9-1', 'high')).toEqual([adaptive, { effort: 'high' }]);
    expect(await asked('claude-3-7-sonnet-20250219', 'low')).toEqual([{ type: 'enabled', budget_tokens: 4_096 }, undefined]);
    expect(await asked('claude-opus-4-5-20251101', 'high', { max_output_tokens: 5_000 })).toEqual([
      { type: 'enabled', budget_tokens: 3_976 },
      undefined,
    ]);
    expect(await asked('claude-haiku-4-5', 'high', { max_output_tokens: 1_500 })).toEqual([undefined, undefined]);
    expect(
      await asked('x', 'high', {
        model_meta: { id: 'x', provider: 'anthropic', context_window: 1, max_output_tokens: 1_000, supports_thinking: false },
      }),
    ).toEqual([undefined, undefined]);
    expect(server.requests.every((request) => request.violation === null)).toBe(true);
  });

  it('C23 replaces counts by later ones and never adds them', async () => {
    const start = { input_tokens: 2, cache_creation_input_tokens: 47_119, cache_read_input_tokens: 0, output_tokens: 4 };
    server.script({
      events: anthropicStream([{ text: 'ok' }], {
        usage: { start, delta: { ...start, output_tokens: 64, output_tokens_details: { thinking_tokens: 7 } } },
      }),
    });
    const { message, frames } = await bench.run({ model: MODEL });
    expect(message.usage).toEqual({
      input: 2,
      output: 64,
      cache_read: 0,
      cache_write: 47_119,
      reasoning: 7,
      cost_usd: expect.closeTo((2 * 3 + 64 * 15 + 47_119 * 3.75) / 1e6, 8),
    });
    expect(frames.filter((frame) => frame.type === 'usage')).toHaveLength(2);
  });

  it.each([
    ['end_turn', 'end'],
    ['stop_sequence', 'end'],
    ['pause_turn', 'end'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['something_new', 'end'],
  ])('takes the stop reason %s for %s', async (native, stop) => {
    server.script({ events: anthropicStream([{ text: 'ok' }], { stop: native }) });
    expect((await bench.run({ model: MODEL })).message).toMatchObject({ stop_reason: stop, native_stop_reason: native });
  });

  it('takes a refusal for a failure that no retry helps', async () => {
    server.script({ events: anthropicStream([], { stop: 'refusal' }) });
    expect((await bench.run({ model: MODEL })).message).toMatchObject({
      stop_reason: 'error',
      error_kind: 'permanent',
      native_stop_reason: 'refusal',
    });
  });

  it.each([
    ['{"comm', '{"comm'],
    ['', ''],
    ['{"command":"ls"}', { command: 'ls' }],
  ])('keeps the arguments %j of a call at a length stop as %j', async (raw, kept) => {
    server.script({ events: anthropicStream([{ call: 'shell__exec', id: 't1', args: {}, raw }], { stop: 'max_tokens' }) });
    expect((await bench.run({ model: MODEL, tools: [shellExec] })).message).toMatchObject({
      stop_reason: 'length',
      content: [{ arguments: kept }],
    });
  });

  it('marks the cache after tools, system and the last two user messages', async () => {
    server.script({ events: anthropicStream([{ text: 'ok' }]) }, { events: anthropicStream([{ text: 'ok' }]) });
    const call = { type: 'function_call' as const, id: 't1', function_id: 'shell::exec', arguments: {} };
    const messages = [user('a'), assistant([{ type: 'text', text: 'b' }]), user('c'), assistant([call]), result('t1', '')];
    await bench.run({ model: MODEL, tools: [shellExec, { ...shellExec, name: 'b' }], system_prompt: 'Be brief.', messages });
    const mark = { type: 'ephemeral' };
    const body = server.lastBody as { tools: object[]; system: object[]; messages: { content: object[] }[] };
    expect(body.tools[1]).toHaveProperty('cache_control', mark);
    expect(body.system[0]).toHaveProperty('cache_control', mark);
    expect(body.messages[2]?.content[0]).toHaveProperty('cache_control', mark);
    expect(body.messages[4]?.content[0]).toEqual({
      type: 'tool_result',
      tool_use_id: 't1',
      content: [{ type: 'text', text: '(no output)' }],
      cache_control: mark,
    });
    expect(JSON.stringify(body).split('cache_control')).toHaveLength(5);
    await bench.run({ model: MODEL, system_prompt: '  ', messages, provider_options: { cache: false } });
    expect(JSON.stringify(server.lastBody)).not.toContain('cache_control');
    expect(server.lastBody['system']).toBeUndefined();
    expect(server.requests.map((request) => request.violation)).toEqual([null, null]);
  });

  it('C33 keeps what it sent as a prefix of what it sends next, marks aside', async () => {
    const call = (id: string): never => ({ type: 'function_call', id, function_id: 'shell::exec', arguments: { command: 'ls' } }) as never;
    const history = [user('go'), assistant([call('t1')]), result('t1', 'a'), assistant([call('t2')]), result('t2', 'b')];
    server.script({ events: anthropicStream([{ text: 'ok' }]) }, { events: anthropicStream([{ text: 'ok' }]) });
    const plain = (): string =>
      JSON.stringify([server.lastBody['tools'], server.lastBody['system'], server.lastBody['messages']], (key, value: unknown) =>
        key === 'cache_control' ? undefined : value,
      );
    await bench.run({ model: MODEL, tools: [shellExec], messages: history.slice(0, 3) });
    const first = plain();
    await bench.run({ model: MODEL, tools: [shellExec], messages: history });
    expect(plain().startsWith(first.slice(0, -2))).toBe(true);
  });

  it('asks for structured output where the vendor can enforce it, in words where not', async () => {
    const schema = {
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1 }, list: { type: 'array', items: { type: 'string' } } },
      required: ['n'],
    };
    server.script(...[1, 2, 3].map(() => ({ events: anthropicStream([{ text: '{}' }]) })));
    await bench.run({ model: MODEL, response_format: { type: 'json', schema } });
    expect(server.lastBody['output_config']).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { n: { type: 'integer' }, list: { type: 'array', items: { type: 'string' } } },
          required: ['n'],
          additionalProperties: false,
        },
      },
    });
    const recursive = { $ref: '#/$defs/node', $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } } };
    await bench.run({ model: MODEL, response_format: { type: 'json', schema: recursive }, system_prompt: 'Be brief.' });
    expect(server.lastBody['output_config']).toBeUndefined();
    expect(server.lastBody['system']).toMatchObject([{ text: 'Be brief.' }, { text: expect.stringContaining('JSON Schema') }]);
    await bench.run({ model: 'claude-opus-4-1', response_format: { type: 'json', schema } });
    expect(server.lastBody['output_config']).toBeUndefined();
    expect(server.requests.map((request) => request.violation)).toEqual([null, null, null]);
  });

  it('passes its own options on, but none that replaces what we send', async () => {
    server.script({ events: anthropicStream([{ text: 'ok' }]) });
    await bench.run({
      model: MODEL,
      provider_options: { temperature: 0.2, stop_sequences: ['X'], betas: ['beta-1', 'beta-2'], messages: [], cache_ttl: '1h' },
    });
    expect(server.requests[0]).toMatchObject({ violation: null, headers: { 'anthropic-beta': 'beta-1,beta-2' } });
    expect(server.lastBody).toMatchObject({
      temperature: 0.2,
      stop_sequences: ['X'],
      messages: [{ content: [{ text: 'hi', cache_control: { ttl: '1h' } }] }],
    });
  });

  it('limits output by the request, else by the router, else by the model', async () => {
    const limit = async (over: object, maxTokens?: number): Promise<unknown> => {
      server.script({ events: anthropicStream([{ text: 'ok' }]) });
      bench.maxTokens = maxTokens;
      await bench.run({ model: MODEL, ...over });
      bench.maxTokens = undefined;
      return server.lastBody['max_tokens'];
    };
    expect(await limit({ max_output_tokens: 100 }, 50)).toBe(100);
    expect(await limit({}, 32_000)).toBe(32_000);
    expect(await limit({}, 99_000)).toBe(64_000);
    expect(await limit({})).toBe(64_000);
    expect(await limit({ model: 'claude-unknown' })).toBe(8_192);
  });

  it('lists models from the vendor with what it can do', async () => {
    const can = (supported: boolean): object => ({ supported });
    const capabilities = {
      effort: { supported: true, low: can(true), medium: can(true), high: can(true), xhigh: can(false), max: can(true) },
      image_input: can(true),
      structured_outputs: can(true),
      thinking: { supported: true, types: { adaptive: can(true), enabled: can(false), disabled: can(true), between_tools: can(false) } },
    };
    const info = (id: string, over: object): object => ({
      type: 'model',
      id,
      display_name: id,
      created_at: '',
      lifecycle: 'active',
      max_input_tokens: 500_000,
      max_tokens: 70_000,
      capabilities,
      ...over,
    });
    server.script({
      body: {
        data: [
          info('claude-next', {}),
          info('claude-sonnet-4-5-20250929', { capabilities: null, max_tokens: null }),
          info('claude-old', { lifecycle: 'retired' }),
        ],
        has_more: false,
        first_id: null,
        last_id: null,
      },
    });
    await expect(bench.bus.trigger({ function_id: 'provider::anthropic::refresh_models', payload: {} })).resolves.toEqual({
      ok: true,
      count: 2,
    });
    expect(bench.calls.reconcile.at(-1)).toMatchObject({
      provider: 'anthropic',
      models: [
        {
          id: 'claude-next',
          context_window: 500_000,
          max_output_tokens: 70_000,
          reasoning_efforts: [{ effort: 'low' }, { effort: 'medium' }, { effort: 'high' }, { effort: 'max' }],
          supports_xhigh: false,
        },
        { id: 'claude-sonnet-4-5-20250929', pricing: { input: 3 }, max_output_tokens: 64_000, thinking_budgets: expect.any(Object) },
      ],
    });
  });

  it('fails to list without showing the key', async () => {
    server.script({ status: 401, body: { type: 'error', error: { type: 'authentication_error', message: `bad ${bench.credential}` } } });
    const failed = bench.bus.trigger({ function_id: 'provider::anthropic::refresh_models', payload: {} });
    await expect(failed).rejects.toThrow(/provider\/listing_failed: Anthropic answered 401.*\[redacted\]/);
  });

  it('refuses a request that is none', async () => {
    await expect(bench.bus.trigger({ function_id: 'provider::anthropic::stream', payload: { model: 'x' } })).rejects.toThrow(
      'provider/invalid_request: writer_ref is missing',
    );
  });

  it('keeps a silent stream alive', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
    try {
      server.script({ ending: 'stall' });
      const { reader, result: ended } = await bench.open({ model: MODEL });
      await server.received(1);
      vi.advanceTimersByTime(25_000);
      expect(await readTo(reader, 'ping')).toEqual([{ type: 'ping' }]);
      reader.close();
      await ended;
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('tells a router that has forgotten it again', async () => {
    const told = bench.calls.register.length;
    let forgotten = true;
    bench.whileResolving = () => {
      if (forgotten) throw new Error('router/unknown_provider: there is no provider anthropic');
    };
    server.script({ events: anthropicStream([{ text: 'ok' }]) });
    bench.onRegister = () => {
      forgotten = false;
    };
    expect((await bench.run({ model: MODEL })).ok).toBe(true);
    Object.assign(bench, { whileResolving: undefined, onRegister: undefined });
    expect(bench.calls.register).toHaveLength(told + 1);
  });

  it('does not show its functions to models', async () => {
    const list = async (include_internal: boolean): Promise<string[]> => {
      const { functions } = await bench.bus.trigger<{ functions: { function_id: string }[] }>({
        function_id: 'engine::functions::list',
        payload: { include_internal },
      });
      return functions.map((row) => row.function_id).filter((id) => id.startsWith('provider::'));
    };
    expect(await list(false)).toEqual([]);
    expect(await list(true)).toEqual(['provider::anthropic::refresh_models', 'provider::anthropic::stream']);
  });

  it('C16 asks newer models to drop thinking whose conversation has changed, instead of failing', async () => {
    const messages = (model: string): AgentMessage[] => [
      user('go'),
      assistant(
        [
          { type: 'thinking', text: '', signature: 'SIG' },
          { type: 'text', text: 'so' },
        ],
        { model },
      ),
      user('on'),
    ];
    const asked = async (model: string, over: object = {}): Promise<unknown> => {
      server.script({ events: anthropicStream([{ text: 'ok' }]) });
      await bench.run({ model, messages: messages(model), ...over });
      expect(server.requests.at(-1)?.violation).toBeNull();
      return [server.lastBody['thinking'], server.requests.at(-1)?.headers['anthropic-beta']];
    };
    const block_binding = { prefix_mismatch_behavior: 'drop_block' };
    const beta = 'thinking-binding-controls-2026-08-01';
    expect(await asked('claude-opus-5-5')).toEqual([{ type: 'adaptive', block_binding }, beta]);
    expect(await asked('claude-fable-5-2', { thinking_level: 'low' })).toEqual([
      { type: 'adaptive', display: 'summarized', block_binding },
      beta,
    ]);
    expect(await asked('claude-new-6', { provider_options: { thinking: { type: 'disabled' }, betas: ['b'] } })).toEqual([
      { type: 'disabled' },
      `b,${beta}`,
    ]);
    expect(await asked('claude-opus-5-20260724')).toEqual([undefined, undefined]);
    expect(await asked('claude-opus-4-5')).toEqual([undefined, undefined]);
    expect(await asked('claude-opus-5-5', { messages: [user('hi')] })).toEqual([undefined, undefined]);
  });

  it.each([
    ['was stopped', { stop_reason: 'aborted' as const }],
    ['failed', { stop_reason: 'error' as const }],
    ['is of another provider', { provider: 'openai' }],
  ])('C16 sends no thinking of an answer that %s', async (_name, over) => {
    server.script({ events: anthropicStream([{ text: 'ok' }]) });
    const content: AssistantMessage['content'] = [
      { type: 'thinking', text: 'hm', signature: 'SIG' },
      { type: 'redacted_thinking', data: 'OPAQUE' },
      { type: 'text', text: 'half' },
    ];
    await bench.run({ model: MODEL, messages: [user('go'), assistant(content, { model: MODEL, ...over }), user('on')] });
    expect((server.lastBody['messages'] as unknown[])[1]).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'half' }] });
  });
});
