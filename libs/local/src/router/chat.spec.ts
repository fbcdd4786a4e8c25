import { afterEach, describe, expect, it } from 'vitest';
import { type ChatResponse, errorCode, type Model, type StreamFrame } from '#libs/contracts';
import { defaultRouterSettings } from './settings.js';
import {
  delta,
  done,
  failed,
  good,
  makeRig,
  message,
  type Rig,
  type RigOptions,
  readAll,
  sends,
  stalls,
  start,
  terminals,
  types,
} from './test/rig.js';

let rig: Rig;
const open = async (options: RigOptions = {}): Promise<Rig> => (rig = await makeRig(options));
afterEach(() => rig.close());

const last = (frames: readonly StreamFrame[]): StreamFrame | undefined => frames[frames.length - 1];
const textOfLast = (frames: readonly StreamFrame[]): string => {
  const frame = last(frames);
  const terminal = frame?.type === 'done' ? frame.message : frame?.type === 'error' ? frame.error : undefined;
  return JSON.stringify(terminal?.content ?? null);
};
const errorOf = (frames: readonly StreamFrame[]): { kind: unknown; text: unknown } => {
  const frame = last(frames);
  if (frame?.type !== 'error') throw new Error(`the last frame is ${frame?.type ?? 'missing'}`);
  return { kind: frame.error.error_kind, text: frame.error.error_message };
};
const model = (over: Partial<Model> = {}): Model => ({ id: 'm', provider: 'p', context_window: 1000, max_output_tokens: 500, ...over });

describe('router::chat relays a stream', () => {
  it('passes all frames on in order and answers with the end', async () => {
    await open();
    await rig.provider('p', [good()]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(types(frames)).toBe('start text_start text_delta text_delta text_end done');
    expect(response).toEqual({ ok: true, provider: 'p', model: 'm', stop_reason: 'end', usage: null });
  });

  it('passes on thousands of frames with a slow reader and loses none', async () => {
    await open();
    const many = Array.from({ length: 3000 }, (_, i) => delta(`${i} `));
    await rig.provider('p', [sends(start, ...many, done())]);
    const { frames } = await rig.chat({ provider: 'p' });
    expect(frames.filter((f) => f.type === 'text_delta')).toEqual(many);
    expect(terminals(frames)).toBe(1);
  });

  it('forwards only the slice of options of the routed provider, the messages as they are, and the model row', async () => {
    await open();
    const p = await rig.provider('p', [good()], { models: [model()] });
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }], timestamp: 5 }];
    await rig.chat({
      provider: 'p',
      messages,
      system_prompt: 's',
      provider_options: { p: { a: 1 }, q: { secret: 2 } },
      max_output_tokens: 9_999,
    });
    expect(p.requests[0]).toMatchObject({
      model: 'm',
      messages,
      system_prompt: 's',
      provider_options: { a: 1 },
      max_output_tokens: 500,
      model_meta: { id: 'm' },
    });
    expect(p.requests[0]?.messages).toBe(messages);
    expect(JSON.stringify(p.requests[0])).not.toContain('secret');
  });

  it('adds the cost by the prices of the catalog, and leaves a cost that the provider gives', async () => {
    await open();
    const usage = { input: 2, cache_write: 47_119, output: 64 };
    await rig.provider('p', [sends(start, delta('x'), done(usage)), sends(done({ ...usage, cost_usd: 7 }))], {
      models: [model({ pricing: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 } })],
    });
    const first = await rig.chat({ provider: 'p' });
    const cost = (2 * 3 + 64 * 15 + 47_119 * 3.75) / 1e6;
    expect(first.response.usage?.cost_usd).toBeCloseTo(cost, 9);
    expect(last(first.frames)).toMatchObject({ type: 'done', message: { usage: { ...usage, cost_usd: first.response.usage?.cost_usd } } });
    expect((await rig.chat({ provider: 'p' })).response.usage?.cost_usd).toBe(7);
  });

  it('ignores what comes after the terminal frame', async () => {
    await open();
    await rig.provider('p', [sends(start, delta('x'), done(), delta('late'), done())]);
    const { frames } = await rig.chat({ provider: 'p' });
    expect(types(frames)).toBe('start text_delta done');
  });
});

describe('C22 router::chat retries only before the first content', () => {
  it('C14 repeats a transient failure, hides the first start, and doubles the pause up to its cap', async () => {
    await open({ settings: { settings: { retry_max: 5, retry_base_ms: 500, retry_cap_ms: 3_000 } } });
    const p = await rig.provider('p', [...Array.from({ length: 4 }, () => sends(start, failed('transient', 'overloaded'))), good()]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(types(frames)).toBe('start text_start text_delta text_delta text_end done');
    expect(response.ok).toBe(true);
    expect(p.requests).toHaveLength(5);
    expect(rig.pauses).toEqual([500, 1_000, 2_000, 3_000]);
  });

  it('takes a random part of the pause', async () => {
    await open({ random: 0.25 });
    await rig.provider('p', [sends(failed('rate_limited', 'slow down')), good()]);
    await rig.chat({ provider: 'p' });
    expect(rig.pauses).toEqual([125]);
  });

  it('makes as many tries as configured, then fails with one error frame that says so', async () => {
    await open();
    const p = await rig.provider(
      'p',
      [1, 2, 3].map(() => sends(start, failed('transient', 'HTTP 529'))),
    );
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(defaultRouterSettings.settings.retry_max + 1);
    expect(terminals(frames)).toBe(1);
    expect(errorOf(frames)).toEqual({ kind: 'transient', text: 'HTTP 529 (after 3 tries)' });
    expect(response.error).toMatchObject({ code: 'router/provider_transient', kind: 'transient', retryable: true });
  });

  it.each(['permanent', 'auth_expired', 'context_overflow'] as const)('C14 does not repeat a failure that is %s', async (kind) => {
    await open();
    const p = await rig.provider('p', [sends(failed(kind, 'no'))]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(1);
    expect(errorOf(frames)).toEqual({ kind, text: 'no' });
    expect(response).toMatchObject({ ok: false, stop_reason: 'error', error: { kind, retryable: false } });
  });

  it.each([
    ['text', [{ type: 'text_start' }, delta('x')]],
    ['thinking', [{ type: 'thinking_start' }, { type: 'thinking_delta', delta: 'x' }]],
    ['a call', [{ type: 'functioncall_start', id: 'c' }, { type: 'functioncall_end' }]],
  ] as [string, StreamFrame[]][])('does not repeat once %s has been passed on', async (_, content) => {
    await open();
    const p = await rig.provider('p', [sends(start, ...content, failed('transient', 'broke'))]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(1);
    expect(types(frames)).toBe(['start', ...content.map((f) => f.type), 'error'].join(' '));
    expect(response.error).toMatchObject({ retryable: true });
  });

  it('waits what the provider asks for, with a little chance on top', async () => {
    await open({ random: 0.5 });
    await rig.provider('p', [sends(failed('rate_limited', '429', 2_000)), good()]);
    expect((await rig.chat({ provider: 'p' })).response.ok).toBe(true);
    expect(rig.pauses).toEqual([2_100]);
  });

  it('does not wait three hours, and says how long was asked', async () => {
    await open();
    const p = await rig.provider('p', [sends(failed('rate_limited', 'quota used up', 3 * 3_600_000))]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(1);
    expect(errorOf(frames).text).toBe('quota used up (the provider asks to wait 3 h; the router waits at most 30 s)');
    expect(response.error).toMatchObject({ code: 'router/provider_rate_limited', retryable: false });
  });

  it('does not begin a pause that the time left does not allow', async () => {
    await open({ settings: { settings: { stream_timeout_ms: 200 } } });
    const p = await rig.provider('p', [sends(failed('transient', 'busy'))]);
    expect(errorOf((await rig.chat({ provider: 'p' })).frames).text).toContain('no time is left');
    expect(p.requests).toHaveLength(1);
  });
});

describe('C21 router::chat ends streams that stall or break', () => {
  it('repeats a provider that sends nothing, then fails as a transient stall', async () => {
    await open({ settings: { settings: { first_byte_timeout_ms: 15, retry_max: 1 } } });
    const p = await rig.provider('p', [stalls(), stalls()]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(2);
    await p.cancelled;
    expect(types(frames)).toBe('error');
    expect(errorOf(frames)).toEqual({ kind: 'transient', text: 'provider p sent nothing within 15 ms (after 2 tries)' });
    expect(response.error?.code).toBe('router/stream_idle_timeout');
  });

  it('recovers when the next try answers', async () => {
    await open({ settings: { settings: { idle_timeout_ms: 15 } } });
    await rig.provider('p', [stalls(start), good()]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(response.ok).toBe(true);
    expect(types(frames)).toBe('start text_start text_delta text_delta text_end done');
  });

  it('does not take pings for progress', async () => {
    await open({ settings: { settings: { idle_timeout_ms: 40, retry_max: 0 } } });
    await rig.provider('p', [
      async (writer) => {
        while (!writer.signal.aborted) {
          await writer.send({ type: 'ping' });
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      },
    ]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(response.error?.code).toBe('router/stream_idle_timeout');
    expect(frames.some((f) => f.type === 'ping')).toBe(true);
    expect(terminals(frames)).toBe(1);
  });

  it('keeps the text of a stream that stalls half way, and does not repeat it', async () => {
    await open({ settings: { settings: { idle_timeout_ms: 15 } } });
    const p = await rig.provider('p', [stalls(start, delta('half '), delta('a sentence'))]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(1);
    expect(response.error).toMatchObject({ code: 'router/stream_idle_timeout', kind: 'transient' });
    expect(textOfLast(frames)).toContain('half a sentence');
  });

  it('sees a stall after the first frame in time although the first byte may take longer', async () => {
    await open({ settings: { settings: { idle_timeout_ms: 15, first_byte_timeout_ms: 60_000, retry_max: 0 } } });
    await rig.provider('p', [stalls(start)]);
    expect((await rig.chat({ provider: 'p' })).response.error?.message).toContain('stalled');
  });

  it('ends a stream that goes on for too long in all', async () => {
    await open({ settings: { settings: { stream_timeout_ms: 60, idle_timeout_ms: 1_000 } } });
    const p = await rig.provider('p', [
      async (writer) => {
        while (!writer.signal.aborted) {
          await writer.send(delta('x'));
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      },
    ]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    await p.cancelled;
    expect(response.error).toMatchObject({ code: 'router/stream_timeout', kind: 'transient' });
    expect(terminals(frames)).toBe(1);
  });

  it('does not hold a slow caller against the provider', async () => {
    await open({ settings: { settings: { idle_timeout_ms: 30 } } });
    await rig.provider('p', [sends(...Array.from({ length: 200 }, () => delta('x')), done())]);
    const channel = await rig.bus.createChannel({ bufferSize: 4 });
    const response = rig.call<ChatResponse>('router::chat', { model: 'm', provider: 'p', messages: [], writer_ref: channel.writerRef });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(terminals(await readAll(channel.reader))).toBe(1);
    expect((await response).ok).toBe(true);
  });

  it('repeats a stream that closes without content, and fails one that closes after content', async () => {
    await open();
    const p = await rig.provider('p', [sends(start), good(), sends(start, delta('cut off'))]);
    expect((await rig.chat({ provider: 'p' })).response.ok).toBe(true);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(3);
    expect(response.error).toMatchObject({ code: 'router/stream_incomplete', kind: 'transient' });
    expect(textOfLast(frames)).toContain('cut off');
    expect(terminals(frames)).toBe(1);
  });

  it('leaves calls out of a message that broke off', async () => {
    await open();
    const call = { type: 'function_call' as const, id: 'c', function_id: 'f', arguments: {} };
    await rig.provider('p', [
      sends(
        start,
        delta('text'),
        { type: 'functioncall_start', id: 'c', partial: message({ content: [{ type: 'text', text: 'text' }, call] }) },
        { type: 'functioncall_delta', delta: '{"a"' },
      ),
    ]);
    expect(textOfLast((await rig.chat({ provider: 'p' })).frames)).toBe(JSON.stringify([{ type: 'text', text: 'text' }]));
  });

  it('says why when the provider throws, and does not repeat it', async () => {
    await open();
    const p = await rig.provider('p', [() => Promise.reject(new Error('cannot read the request'))]);
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(p.requests).toHaveLength(1);
    expect(errorOf(frames)).toEqual({ kind: 'permanent', text: 'provider p failed: cannot read the request' });
    expect(response.error?.code).toBe('router/stream_setup_failed');
  });

  it('refuses frames that are none', async () => {
    await open();
    await rig.provider('p', [(writer) => void writer.send(null), (writer) => void writer.send({ type: 'done' })]);
    for (const what of ['a frame without a type', 'the done frame without its message']) {
      const { frames, response } = await rig.chat({ provider: 'p' });
      expect(terminals(frames)).toBe(1);
      expect(response.error).toMatchObject({ code: 'router/provider_rejected', message: `provider p sent ${what}` });
    }
  });

  it('repeats a call whose provider is not running, and tells that it came and went', async () => {
    await open();
    const changes: unknown[] = [];
    rig.bus.registerFunction({ id: 'test::changes' }, (payload) => void changes.push(payload));
    rig.bus.registerTrigger({ type: 'router::provider::changed', function_id: 'test::changes', config: null });
    await rig.call('router::provider::register', { id: 'gone' });
    const { frames, response } = await rig.chat({ provider: 'gone' });
    expect(terminals(frames)).toBe(1);
    expect(response.error).toMatchObject({ code: 'router/provider_unavailable', kind: 'transient' });
    expect(rig.pauses).toHaveLength(2);
    expect(changes).toEqual([
      { provider: 'gone', op: 'register' },
      { provider: 'gone', op: 'unavailable' },
    ]);
  });
});

describe('router::chat is cancelled', () => {
  it('C05 C23 by router::abort: the provider is stopped, the text and the counts so far are kept', async () => {
    await open();
    const p = await rig.provider('p', [stalls(start, delta('so '), delta('far'), { type: 'usage', usage: { input: 3, output: 2 } })]);
    const channel = await rig.bus.createChannel();
    const response = rig.call<ChatResponse>('router::chat', {
      model: 'm',
      provider: 'p',
      messages: [],
      request_id: 'r1',
      writer_ref: channel.writerRef,
    });
    const seen: StreamFrame[] = [];
    while (!seen.some((f) => f.type === 'usage')) seen.push(...((await channel.reader.next()) as StreamFrame[]));
    expect(await rig.call('router::abort', { request_id: 'r1' })).toEqual({ aborted: true });
    await p.cancelled;
    const frames = [...seen, ...(await readAll(channel.reader))];
    expect(last(frames)).toMatchObject({
      type: 'done',
      message: { stop_reason: 'aborted', content: [{ type: 'text', text: 'so far' }], usage: { input: 3, output: 2 } },
    });
    expect(terminals(frames)).toBe(1);
    expect(await response).toMatchObject({ ok: true, stop_reason: 'aborted' });
    expect(await rig.call('router::abort', { request_id: 'r1' })).toEqual({ aborted: false });
  });

  it('by a consumer that closes its reader', async () => {
    await open();
    const p = await rig.provider('p', [stalls(start, delta('x'))]);
    const channel = await rig.bus.createChannel();
    const response = rig.call<ChatResponse>('router::chat', { model: 'm', provider: 'p', messages: [], writer_ref: channel.writerRef });
    await channel.reader.next();
    channel.reader.close();
    await p.cancelled;
    expect(await response).toMatchObject({ ok: true, stop_reason: 'aborted' });
    expect(rig.engine.channels.size).toBe(0);
  });

  it('by router::abort, also while the caller does not read', async () => {
    await open();
    const p = await rig.provider('p', [
      async (writer) => {
        while (!writer.signal.aborted) await writer.send(delta('x'));
      },
    ]);
    const channel = await rig.bus.createChannel({ bufferSize: 2 });
    const response = rig.call<ChatResponse>('router::chat', {
      model: 'm',
      provider: 'p',
      messages: [],
      request_id: 'r',
      writer_ref: channel.writerRef,
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await rig.call('router::abort', { request_id: 'r' });
    await p.cancelled;
    expect(terminals(await readAll(channel.reader))).toBe(1);
    expect((await response).stop_reason).toBe('aborted');
  });

  it('before it began', async () => {
    await open();
    const p = await rig.provider('p', [stalls()]);
    const channel = await rig.bus.createChannel();
    const writer = { ...channel.writerRef };
    const response = rig.call<ChatResponse>('router::chat', {
      model: 'm',
      provider: 'p',
      messages: [],
      request_id: 'r',
      writer_ref: writer,
    });
    await new Promise((resolve) => setImmediate(resolve));
    channel.reader.close();
    expect(await response).toMatchObject({ stop_reason: 'aborted' });
    expect(p.requests.length).toBeLessThanOrEqual(1);
  });

  it('in the pause before a further try', async () => {
    await open();
    const p = await rig.provider('p', [sends(failed('transient', 'busy'))]);
    rig.settings.settings.retry_base_ms = 1;
    const channel = await rig.bus.createChannel();
    const pauses = rig.pauses;
    const push = pauses.push.bind(pauses);
    pauses.push = (ms) => {
      channel.reader.close();
      return push(ms);
    };
    const response = await rig.call<ChatResponse>('router::chat', {
      model: 'm',
      provider: 'p',
      messages: [],
      writer_ref: channel.writerRef,
    });
    expect(response.stop_reason).toBe('aborted');
    expect(p.requests).toHaveLength(1);
  });

  it('leaves no channel and no request behind', async () => {
    await open();
    await rig.provider('p', [good(), good()]);
    await rig.chat({ provider: 'p', request_id: 'same' });
    expect((await rig.chat({ provider: 'p', request_id: 'same' })).response.ok).toBe(true);
    expect(rig.engine.channels.size).toBe(0);
  });

  it('refuses a second chat under a request_id that runs', async () => {
    await open();
    await rig.provider('p', [stalls(start, delta('x'))]);
    const channel = await rig.bus.createChannel();
    const first = rig.call<ChatResponse>('router::chat', {
      model: 'm',
      provider: 'p',
      messages: [],
      request_id: 'r',
      writer_ref: channel.writerRef,
    });
    await channel.reader.next();
    const second = await rig.chat({ provider: 'p', request_id: 'r' });
    expect(second.response.error?.code).toBe('router/request_in_progress');
    expect(terminals(second.frames)).toBe(1);
    expect(await rig.call('router::abort', { request_id: 'r' })).toEqual({ aborted: true });
    expect((await first).stop_reason).toBe('aborted');
  });
});

describe('a chat that never reaches a provider', () => {
  it('still writes one error frame, of kind permanent', async () => {
    await open();
    const { frames, response } = await rig.chat({ provider: 'nobody' });
    expect(types(frames)).toBe('error');
    expect(errorOf(frames).kind).toBe('permanent');
    expect(response).toMatchObject({ ok: false, provider: 'nobody', error: { code: 'router/unknown_provider', retryable: false } });
  });

  it('says which variable to set when there is no key, and never shows a key', async () => {
    await open({ env: { P_KEY: '' } });
    await rig.provider('p', [], { credential_env_var: 'P_KEY' });
    const { response } = await rig.chat({ provider: 'p' });
    expect(response.error?.code).toBe('router/not_configured');
    expect(response.error?.message).toContain('P_KEY');
  });

  it('C55 takes the key out of what a vendor echoes, also a part of it', async () => {
    const key = 'sk-live-0123456789abcdefghij';
    await open({ env: { P_KEY: key } });
    await rig.provider('p', [sends(failed('auth_expired', `bad key ${key} (sk-live-0123****)`))], { credential_env_var: 'P_KEY' });
    const { frames, response } = await rig.chat({ provider: 'p' });
    expect(JSON.stringify([frames, response])).not.toContain('sk-live-0123');
    expect(errorOf(frames).text).toContain('bad key [redacted]');
  });

  it('refuses a format that the model cannot be held to', async () => {
    await open();
    await rig.provider('p', [], { models: [model({ supports_structured_output: false })] });
    expect((await rig.chat({ response_format: { type: 'json' } })).response.error?.code).toBe('router/structured_output_unsupported');
  });

  it('refuses a payload that is not one', async () => {
    await open();
    await expect(rig.call('router::chat', { model: 'm' })).rejects.toThrow(/router\/invalid_request: .*missing/);
  });
});

describe('router::complete', () => {
  it('returns the whole message', async () => {
    await open();
    await rig.provider('p', [sends(start, delta('x'), done({ input: 1, output: 2 }))]);
    expect(await rig.call('router::complete', { model: 'm', provider: 'p', messages: [] })).toMatchObject({
      provider: 'p',
      model: 'm',
      usage: { input: 1, output: 2 },
      message: { content: [{ type: 'text', text: 'hello' }] },
    });
  });

  it('throws the failure with its code', async () => {
    await open();
    await rig.provider('p', [sends(failed('context_overflow', 'too long'))]);
    const error = await rig.call('router::complete', { model: 'm', provider: 'p', messages: [] }).catch((e: unknown) => e);
    expect(errorCode(error)).toBe('router/context_overflow');
  });
});
