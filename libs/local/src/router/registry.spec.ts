import { afterEach, describe, expect, it } from 'vitest';
import type { JsonValue, Model, ProviderResolution } from '#libs/contracts';
import { inWords } from './retry.js';
import { makeRig, type Rig, type RigOptions } from './test/rig.js';

let rig: Rig;
const open = async (options: RigOptions = {}): Promise<Rig> => (rig = await makeRig(options));
afterEach(() => rig?.close());

const model = (id: string, over: Partial<Model> = {}): Model => ({
  id,
  provider: 'p',
  context_window: 100_000,
  max_output_tokens: 64_000,
  ...over,
});
const register = (id: string, over: object = {}): Promise<{ ok: boolean; registration_token: string }> =>
  rig.call('router::provider::register', { id, ...over });
const resolve = (id: string, over: object = {}): Promise<ProviderResolution> => rig.call('router::provider::resolve', { id, ...over });

describe('router::models', () => {
  it('lists by provider, capability and modality', async () => {
    await open();
    await register('p', { models: [model('a', { supports_vision: true }), model('b')] });
    await register('q', { models: [model('c', { supports_vision: true })] });
    const ids = async (query: object): Promise<string[]> =>
      (await rig.call<{ models: Model[] }>('router::models::list', query)).models.map((m) => `${m.provider}/${m.id}`);
    expect(await ids({})).toEqual(['p/a', 'p/b', 'q/c']);
    expect(await ids({ provider: 'p' })).toEqual(['p/a', 'p/b']);
    expect(await ids({ capability: 'vision' })).toEqual(['p/a', 'q/c']);
    expect(await ids({ modality: 'any' })).toHaveLength(3);
    expect(await ids({ modality: 'stt' })).toEqual([]);
    await expect(ids({ capability: 'flight' })).rejects.toThrow('router/invalid_request');
  });

  it('reads one model, or null', async () => {
    await open();
    await register('p', { models: [model('a')] });
    expect(await rig.call('router::models::get', { provider: 'p', id: 'a' })).toEqual({ model: model('a') });
    expect(await rig.call('router::models::get', { provider: 'p', id: 'z' })).toBeNull();
    expect(await rig.call('router::models::get', {})).toBeNull();
  });

  it.each([
    [{ id: 'a', provider: 'p' }, 32_000, 'the maximum of the router'],
    [{ id: 'a', provider: 'p', max_output_tokens: 50_000 }, 50_000, 'what is asked for'],
    [{ id: 'a', provider: 'p', max_output_tokens: 99_999 }, 64_000, 'never more than the model can'],
    [{ id: 'small' }, 4_000, 'the limit of the model'],
    [{ id: 'set', provider: 'q' }, 9_000, 'the setting of the provider'],
  ] as [object, number, string][])('budgets %j with %i: %s', async (query, expected) => {
    await open({ settings: { providers: { q: { max_tokens: 9_000 } } } });
    await register('p', { models: [model('a'), model('small', { max_output_tokens: 4_000 })] });
    await register('q', { models: [model('set')], defaults: { max_tokens: 100 } });
    expect(await rig.call('router::models::budget', query)).toMatchObject({ effective_max_output_tokens: expected });
  });

  it('budgets nothing for an unknown model, and refuses an ambiguous one', async () => {
    await open();
    await register('p', { models: [model('a')] });
    await register('q', { models: [model('a')] });
    expect(await rig.call('router::models::budget', { id: 'zzz' })).toBeNull();
    expect(await rig.call('router::models::budget', { id: 'zzz', provider: 'p' })).toBeNull();
    await expect(rig.call('router::models::budget', { id: 'a' })).rejects.toThrow('router/ambiguous_model');
  });

  it.each([
    ['tools', { supports_tools: true }, true],
    ['tools', {}, false],
    ['structured_output', { supports_structured_output: true }, true],
    ['thinking', { supports_thinking: true }, true],
    ['thinking:low', { supports_thinking: true }, true],
    ['thinking:low', {}, false],
    ['thinking:low', { supports_thinking: true, reasoning_efforts: [{ effort: 'high' }] }, false],
    ['thinking:high', { thinking_budgets: { high: 9 } }, true],
    ['thinking:xhigh', { supports_thinking: true }, false],
    ['thinking:xhigh', { supports_xhigh: true }, true],
  ] as [string, Partial<Model>, boolean][])('says whether a model has %s by %j: %s', async (capability, row, supported) => {
    await open();
    await register('p', { models: [model('a', row)] });
    expect(await rig.call('router::models::supports', { provider: 'p', id: 'a', capability })).toEqual({ supported });
    expect(await rig.call('router::models::supports', { provider: 'p', id: 'unknown', capability })).toEqual({ supported: true });
  });

  it('replaces the rows of one provider only, and tells so', async () => {
    await open();
    const told: JsonValue[] = [];
    rig.bus.registerFunction({ id: 'test::told' }, (payload) => void told.push(payload as JsonValue));
    rig.bus.registerTrigger({ type: 'router::models::changed', function_id: 'test::told', config: null });
    const { registration_token: token } = await register('p', { models: [model('a')] });
    await register('q', { models: [model('b')] });
    expect(await rig.call('router::models::reconcile', { provider: 'p', token, models: [model('c'), model('d')] })).toEqual({
      provider: 'p',
      count: 2,
    });
    await expect(rig.call('router::models::reconcile', { provider: 'p', token: 'wrong', models: [] })).rejects.toThrow(
      'router/invalid_request',
    );
    await expect(rig.call('router::models::reconcile', { provider: 'x', models: [] })).rejects.toThrow('router/unknown_provider');
    expect((await rig.call<{ models: Model[] }>('router::models::list', {})).models.map((m) => m.id)).toEqual(['c', 'd', 'b']);
    expect(told).toEqual([
      { provider: 'p', count: 1 },
      { provider: 'q', count: 1 },
      { provider: 'p', count: 2 },
    ]);
  });
});

describe('router::provider', () => {
  it('finds the credential: configuration, then environment', async () => {
    await open({ settings: { providers: { a: { api_key: 'from-config' } } }, env: { A_KEY: 'from-env', B_KEY: ' from-env ', C_KEY: '' } });
    for (const id of ['a', 'b', 'c']) await register(id, { credential_env_var: `${id.toUpperCase()}_KEY` });
    await register('keyless');
    expect(await resolve('a')).toEqual({ configured: true, source: 'config', credential: 'from-config' });
    expect(await resolve('b')).toEqual({ configured: true, source: 'env', credential: 'from-env' });
    expect(await resolve('c')).toEqual({ configured: false, source: 'none', credential: null });
    expect(await resolve('keyless')).toEqual({ configured: true, source: 'none', credential: null });
    await expect(resolve('nobody')).rejects.toThrow(/router\/unknown_provider: .*a, b, c, keyless/);
  });

  it('finds the address: configuration, then <ID>_BASE_URL, then the defaults', async () => {
    await open({
      settings: { providers: { a: { api_url: 'https://config' } } },
      env: { A_BASE_URL: 'https://env', MY_LLM_BASE_URL: 'https://env' },
    });
    for (const id of ['a', 'my-llm', 'c']) await register(id, { defaults: { api_url: 'https://default', max_tokens: 7 } });
    expect((await resolve('a')).api_url).toBe('https://config');
    expect((await resolve('my-llm')).api_url).toBe('https://env');
    expect(await resolve('c')).toMatchObject({ api_url: 'https://default', max_tokens: 7 });
  });

  it.each([
    ['http://localhost:11434/v1', true],
    ['http://127.0.0.1:8080', true],
    ['http://[::1]:1', true],
    ['https://api.example.com', false],
    ['http://127.evil.example', false],
    ['http://localhost.example', false],
  ] as [string, boolean][])('with the address %s and no key is configured: %s', async (url, configured) => {
    await open({ env: { OPENAI_BASE_URL: url } });
    await register('openai', { credential_env_var: 'OPENAI_API_KEY' });
    expect((await resolve('openai')).configured).toBe(configured);
  });

  it('takes a renewed credential with the token of the registration', async () => {
    await open();
    const { registration_token: token } = await register('p', { credential_env_var: 'P_KEY' });
    await expect(rig.call('router::provider::update_credential', { id: 'p', token: 'x', credential: 'k' })).rejects.toThrow(
      'router/invalid_request',
    );
    expect(await rig.call('router::provider::update_credential', { id: 'p', token, credential: 'renewed' })).toEqual({ ok: true });
    expect(await resolve('p', { token })).toMatchObject({ configured: true, credential: 'renewed' });
    expect((await register('p', { credential_env_var: 'P_KEY', token })).registration_token).toBe(token);
    expect((await register('p', { credential_env_var: 'P_KEY' })).registration_token).not.toBe(token);
    await expect(resolve('p', { token })).rejects.toThrow('register again');
  });

  it('lists providers without their secrets', async () => {
    await open({ settings: { providers: { a: { api_key: 'very-secret-key' } } } });
    await rig.provider('a', [], { display_name: 'A', credential_env_var: 'A_KEY' });
    await register('b', { credential_env_var: 'B_KEY' });
    const list = await rig.call('router::provider::list', {});
    expect(list).toEqual({
      providers: [
        { id: 'a', display_name: 'A', configured: true, available: true, supports_model_listing: false, credential_env_var: 'A_KEY' },
        { id: 'b', display_name: 'b', configured: false, available: false, supports_model_listing: false, credential_env_var: 'B_KEY' },
      ],
    });
  });

  it('hides what is for providers from the list of functions', async () => {
    await open();
    const { functions } = await rig.call<{ functions: { function_id: string }[] }>('engine::functions::list', { prefix: 'router::' });
    const ids = functions.map((f) => f.function_id);
    expect(ids).toContain('router::chat');
    for (const hidden of [
      'router::provider::register',
      'router::provider::resolve',
      'router::provider::update_credential',
      'router::models::reconcile',
    ])
      expect(ids).not.toContain(hidden);
  });

  it('gives the identity prompt of the operator, else of the provider, else null', async () => {
    await open({ settings: { default_provider: 'p', providers: { q: { system_prompt: 'operator' } } } });
    await register('p', { system_prompt: 'own' });
    await register('q', { system_prompt: 'own' });
    expect(await rig.call('router::system_prompt::get', {})).toEqual({ provider: 'p', system_prompt: 'own' });
    expect(await rig.call('router::system_prompt::get', { provider: 'q' })).toEqual({ provider: 'q', system_prompt: 'operator' });
    expect(await rig.call('router::system_prompt::get', { provider: 'z' })).toEqual({ provider: 'z', system_prompt: null });
  });
});

describe('router::route and router::ready', () => {
  it('says where a model goes and who lists it', async () => {
    await open();
    await register('p', { models: [model('a')] });
    await register('q', { models: [model('a')] });
    expect(await rig.call('router::route', { model: 'a', provider: 'q' })).toEqual({ provider: 'q', candidates: ['p', 'q'] });
    await expect(rig.call('router::route', { model: 'a' })).rejects.toThrow('router/ambiguous_model');
  });

  it('tells each bound function once, also one that is bound later', async () => {
    await open();
    const told: string[] = [];
    for (const name of ['early', 'late']) rig.bus.registerFunction({ id: `test::${name}` }, () => void told.push(name));
    rig.bus.registerTrigger({ type: 'router::ready', function_id: 'test::early', config: null });
    await Promise.resolve();
    expect(told).toEqual([]);
    rig.events.announceReady();
    rig.events.announceReady();
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual(['early']);
    rig.bus.registerTrigger({ type: 'router::ready', function_id: 'test::late', config: null });
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual(['early', 'late']);
  });
});

describe('times in words', () => {
  it.each([
    [250, '250 ms'],
    [1_000, '1 s'],
    [90_000, '1 min 30 s'],
    [10_800_000, '3 h'],
    [3_660_000, '1 h 1 min'],
  ])('%i is %s', (ms, words) => {
    expect(inWords(ms)).toBe(words);
  });
});
