import { describe, expect, it, onTestFinished } from 'vitest';
import { harnessFunctions, type JsonObject, textOf } from '#libs/contracts';
import { openOnEngine } from '#libs/local';
import { recordOf } from '../conformance/turns.js';
import { newDataDir, removeDataDir } from '../support/store.js';
import { hostOf, PATIENCE, workerOf } from './opened.js';

describe('a worker of an engine', () => {
  it('registers the contract, and runs a turn through the queue, the sessions and the router of others', async () => {
    const host = await hostOf();
    await workerOf(host);
    const info = await host.ask<JsonObject>('engine::functions::info', { function_id: 'harness::spawn' });
    expect(info).toMatchObject({ request_schema: harnessFunctions['harness::spawn'].request });
    host.model.plays(host.model.asks('state::get', { scope: 'a', key: 'b' }), host.model.says('nothing there'));
    await host.ask('harness::send', host.model.send('s_one', 'look', ['state::get']));
    expect(await host.ended('s_one')).toMatchObject({ status: 'completed', step: 1 });
    expect((await host.texts('s_one')).at(-1)).toBe('nothing there');
    expect((await host.transcript('s_one')).map(({ message }) => message?.role)).toEqual([
      'user',
      'assistant',
      'function_result',
      'assistant',
    ]);
  });

  it('begins a step whose job never comes', { timeout: 30_000 }, async () => {
    const host = await hostOf({ runsJobs: false });
    await workerOf(host);
    host.model.plays(host.model.says('all the same'));
    await host.ask('harness::send', host.model.send('s_lost', 'hello'));
    expect((await host.ended('s_lost')).status).toBe('completed');
  });

  it('keeps records in the state of the engine when told to, and leaves none open', async () => {
    const host = await hostOf();
    const worker = await workerOf(host, { store: 'engine' });
    expect(worker.said.join('\n')).toContain('turns are in the state of the engine');
    host.model.plays(host.model.says('kept there'));
    const send = { ...host.model.send('s_state', 'keep it'), idempotency_key: 'k1' };
    const first = await host.ask<JsonObject>('harness::send', send);
    expect(await host.ask('harness::send', send)).toMatchObject({ turn_id: first['turn_id'], deduplicated: true });
    await host.ended('s_state');
    const [document] = await host.ask<JsonObject[]>('state::list', { scope: 'harness-turns' });
    expect(document).toMatchObject({ session_id: 's_state', record: { status: 'completed' }, effects: [], job: null });
    await expect.poll(() => host.ask('state::list', { scope: 'harness-turns-open' }), PATIENCE).toEqual([]);
  });

  it('writes again what an engine has lost, and takes no message twice for it', async () => {
    const host = await hostOf();
    await workerOf(host, { store: 'engine' });
    host.model.plays(host.model.says('once'));
    const send = { ...host.model.send('s_again', 'say it once'), idempotency_key: 'k2' };
    await host.ask('harness::send', send);
    await host.ended('s_again');
    await host.engine.restart(async () => {
      for (const scope of ['harness-turns', 'harness-keys'])
        for (const key of ['s_again', 'k2']) await host.ask('state::delete', { scope, key });
    });
    await expect
      .poll(() => host.ask('state::get', { scope: 'harness-turns', key: 's_again' }), PATIENCE)
      .toMatchObject({ session_id: 's_again' });
    await expect.poll(() => host.ask('harness::send', send).catch(() => null), PATIENCE).toMatchObject({ deduplicated: true });
    expect(await host.texts('s_again')).toEqual(['say it once', 'once']);
  });

  it('closes, with a notice, a turn of which the engine has lost a part', async () => {
    const host = await hostOf();
    const session_id = 's_ahead';
    const turn_id = `t_${session_id}`;
    // What is left when a record is older than its transcript: a call that it does not know of.
    const record = recordOf(session_id);
    await host.ask('session::ensure', { session_id });
    await host.ask('session::append', { session_id, message: { role: 'user', content: [{ type: 'text', text: 'go' }], timestamp: 1 } });
    const call = { type: 'function_call', id: 'fc_1', function_id: 'agent_trigger', arguments: { function: 'a::b', payload: {} } };
    const message = { role: 'assistant', content: [call], model: 'm', provider: 'p', stop_reason: 'function_call', timestamp: 1 };
    await host.ask('session::append', { session_id, entry_id: `e_${turn_id}_0_assistant`, message, origin: { turn_id } });
    const value = { session_id, revision: 1, record, job: { step: 0, not_before: 0 }, parked: [], effects: [] };
    await host.ask('state::set', { scope: 'harness-turns', key: session_id, value });
    await host.ask('state::set', { scope: 'harness-turns-open', key: session_id, value: { session_id } });
    // And a session whose turn is nowhere.
    await host.ask('session::ensure', { session_id: 's_nowhere' });
    const origin = { turn_id: 't_gone' };
    await host.ask('session::append', {
      session_id: 's_nowhere',
      message: { ...message, content: [{ type: 'text', text: 'I will' }] },
      origin,
    });
    await host.ask('session::set-status', { session_id: 's_nowhere', status: 'working' });

    await workerOf(host, { store: 'engine' });
    expect(await host.ended(session_id)).toMatchObject({ status: 'failed' });
    const rows = await host.transcript(session_id);
    expect(rows.map(({ message: m }) => m?.role)).toEqual(['user', 'assistant', 'function_result', undefined]);
    expect(textOf(rows[2]?.message?.content ?? [])).toContain('outcome of a::b is unknown');
    expect(rows[3]?.custom).toMatchObject({ custom_type: 'error', data: { code: 'harness.state_lost' } });
    expect((await host.transcript('s_nowhere')).at(-1)?.custom).toMatchObject({ data: { code: 'harness.state_lost' } });
    expect(await host.ask('session::get', { session_id: 's_nowhere' })).toMatchObject({ meta: { status: 'error' } });
  });

  it('drops what it keeps of a session that is deleted', async () => {
    const host = await hostOf();
    await workerOf(host, { store: 'engine' });
    host.model.plays(host.model.says('bye'));
    await host.ask('harness::send', host.model.send('s_deleted', 'hello'));
    await host.ended('s_deleted');
    await host.ask('session::delete', { session_id: 's_deleted' });
    await expect.poll(() => host.ask('harness::status', { session_id: 's_deleted' }), PATIENCE).toBeNull();
  });

  it('goes on with a turn whose call was under way when the engine went away, without calling again', async () => {
    const host = await hostOf();
    const worker = await workerOf(host);
    let calls = 0;
    host.engine.host.bus.registerFunction({ id: 'slow::call' }, async () => {
      calls += 1;
      void host.engine.restart();
      return await new Promise(() => undefined);
    });
    host.model.plays(host.model.asks('slow::call', {}), host.model.says('I do not know'));
    await host.ask('harness::send', host.model.send('s_cut', 'call it', ['slow::call']));
    await expect.poll(async () => (await host.texts('s_cut')).at(-1), PATIENCE).toBe('I do not know');
    expect((await host.texts('s_cut')).join('\n')).toContain('the connection to the engine was lost while it ran');
    expect(calls).toBe(1);
    expect(worker.said.join('\n')).toContain('the connection to the engine is back');
  });

  it('takes its settings from the engine, and keeps the last good ones', async () => {
    const host = await hostOf();
    const worker = await workerOf(host);
    const { value } = await host.ask<{ value: JsonObject }>('configuration::get', { id: 'harness' });
    await host.ask('configuration::set', { id: 'harness', value: { ...value, default_max_turns: 3 } });
    await expect.poll(() => worker.settings.current().default_max_turns, PATIENCE).toBe(3);
    await host.ask('configuration::set', { id: 'harness', value: { ...value, default_max_turns: 'many' } });
    await expect.poll(() => worker.configurationFaults().join(), PATIENCE).toContain('the entry harness of the engine: default_max_turns');
    expect(worker.settings.current().default_max_turns).toBe(3);
  });

  it('says what it waits for, and ends when it is told to', async () => {
    const host = await hostOf();
    const stop = new AbortController();
    const said: string[] = [];
    const dataDir = newDataDir();
    onTestFinished(() => removeDataDir(dataDir));
    host.engine.host.bus.registerFunction({ id: 'harness::send' }, () => null); // somebody else's
    const opening = openOnEngine({
      dataDir,
      role: 'worker',
      engineUrl: host.engine.url,
      signal: stop.signal,
      log: (_, message) => void said.push(message),
    });
    await expect.poll(() => said.join('\n'), PATIENCE).toContain('waiting for the worker test, which has registered harness::*, to leave');
    stop.abort();
    await expect(opening).rejects.toThrow('harness/stopped: it was told to stop while it waited for the worker test');
  });

  it.each([
    [{ siblings: 'sessions,nobody' }, /HARNESS_SIBLINGS names "nobody", which is none of approval, /],
    [{ store: 'paper' }, /HARNESS_STORE must be "sqlite" or "engine", not "paper"/],
  ])('refuses settings that it does not know: %o', async (settings, reason) => {
    const host = await hostOf();
    await expect(workerOf(host, settings)).rejects.toThrow(reason);
  });
});
