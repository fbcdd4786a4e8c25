import type { IIIClient, InitOptions } from 'iii-sdk';
import { describe, expect, it } from 'vitest';
import { type HookInput, textOf } from '#libs/contracts';
import { agentCall, ScriptedModel } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';
import { connect, openWithGateway, synced, urlOf } from './remote.js';

const HOOK = 'harness::hook::pre-trigger';
const aCall = () => [asks(agentCall('c1', 'probe::run')), says('done')];

/** A client that lets every call pass and says which. */
function guard(url: string, config: object = {}, options: InitOptions = {}): { client: IIIClient; asked: string[] } {
  const client = connect(url, { workerName: 'guard-1', ...options });
  const asked: string[] = [];
  client.registerFunction('guard::check', async ({ call }: HookInput) => {
    asked.push(call?.function_id ?? '');
    return { decision: 'continue' };
  });
  client.registerTrigger({ type: HOOK, function_id: 'guard::check', config });
  return { client, asked };
}

/** Stays away once its connection is gone. */
const NEVER_BACK: InitOptions = { reconnectionConfig: { maxRetries: 0 } };
/** Drops the socket of a client without a word, as a kill does. */
const cut = (client: unknown): void => (client as { ws: { terminate(): void } }).ws.terminate();
const bindings = async (rig: TurnRig): Promise<{ id: string; worker_name: string; away_since?: number }[]> =>
  (
    await rig.call<{ registered_triggers: { id: string; worker_name: string; away_since?: number; function_id: string }[] }>(
      'engine::registered-triggers::list',
      { trigger_type: HOOK },
    )
  ).registered_triggers.filter(({ function_id }) => function_id === 'guard::check');
const until = async (isSo: () => Promise<boolean>): Promise<void> => {
  for (let tries = 0; !(await isSo()); tries += 1) {
    if (tries > 500) throw new Error('it did not come to that');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
const denial = async (rig: TurnRig, session_id: string): Promise<string> => textOf((await rig.results(session_id))[0]?.content ?? []);

describe('guards whose worker is away', () => {
  it('C07 deny, name the hook and say how to remove it; the worker that is back is asked again', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(...aCall(), ...aCall(), ...aCall()) });
    const ran = rig.function('probe::run');
    const { client, asked } = guard(urlOf(rig), { timeout_ms: 200 }, NEVER_BACK);
    await synced(client);
    await rig.turn('go');
    expect([asked, ran.length]).toEqual([['probe::run'], 1]);

    cut(client);
    await until(async () => (await bindings(rig))[0]?.away_since !== undefined);
    const { session_id } = await rig.turn('go');
    expect(await denial(rig, session_id)).toMatch(/guard::check.*guard-1 is away.*harness-cli hooks remove \S+/);
    expect(ran.length).toBe(1);

    const back = guard(urlOf(rig), { timeout_ms: 200 });
    await synced(back.client);
    expect(await bindings(rig)).toEqual([expect.objectContaining({ worker_name: 'guard-1' })]);
    await rig.turn('go');
    expect([back.asked, ran.length]).toEqual([['probe::run'], 2]);
  });

  it('a worker that reconnects while a call waits for it is asked', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(...aCall()) });
    rig.function('probe::run');
    const { client, asked } = guard(urlOf(rig), { timeout_ms: 20_000 });
    await synced(client);
    cut(client);
    await until(async () => (await bindings(rig))[0]?.away_since !== undefined);
    await rig.turn('go');
    expect(asked).toEqual(['probe::run']);
    expect(await bindings(rig)).toHaveLength(1);
  });

  it('fail-open hooks are skipped, and a worker that shuts down takes its guards along', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(...aCall(), ...aCall()) });
    const ran = rig.function('probe::run');
    const open = guard(urlOf(rig), { on_error: 'fail_open' });
    await synced(open.client);
    cut(open.client);
    await until(async () => (await bindings(rig)).length === 0);
    await open.client.shutdown();
    await rig.turn('go');
    expect(ran).toHaveLength(1);

    const closed = guard(urlOf(rig));
    await synced(closed.client);
    await closed.client.shutdown();
    await until(async () => (await bindings(rig)).length === 0);
    await rig.turn('go');
    expect([ran.length, closed.asked]).toEqual([2, []]);
  });

  it('hold after a restart of the process, and in a process without a gateway, until they are removed', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel() });
    const { client } = guard(urlOf(rig), { timeout_ms: 100, functions: ['probe::*'] }, NEVER_BACK);
    await synced(client);
    await until(async () => (await bindings(rig)).length === 1);
    const [bound] = await bindings(rig);
    cut(client);
    await rig.runtime.close();

    const alone = await TurnRig.open({ dataDir: rig.dataDir, model: new ScriptedModel(...aCall(), ...aCall()) });
    try {
      const ran = alone.function('probe::run');
      const { session_id } = await alone.turn('go');
      expect(await denial(alone, session_id)).toContain(`harness-cli hooks remove ${bound?.id ?? '?'}`);
      expect(await alone.call('engine::unregister_trigger', { id: bound?.id })).toEqual({ removed: true });
      await alone.turn('go');
      expect(ran).toHaveLength(1);
    } finally {
      await alone.runtime.close();
    }
    const later = await TurnRig.open({ dataDir: rig.dataDir, model: new ScriptedModel() });
    expect(await bindings(later)).toEqual([]);
    await later.runtime.close();
  });

  it('what another process adds or removes counts from the next step on', async () => {
    const client = await TurnRig.open({ model: new ScriptedModel(...aCall(), ...aCall(), ...aCall()) });
    try {
      const ran = client.function('probe::run');
      await client.turn('go');
      const worker = await openWithGateway({ dataDir: client.dataDir });
      const { client: program } = guard(urlOf(worker), { timeout_ms: 5_000 });
      await synced(program);
      await until(async () => (await bindings(worker)).length === 1);
      await worker.call('session::ensure', { session_id: 's_1' }); // the guard is stored by then
      const { session_id } = await client.turn('go');
      expect(await denial(client, session_id)).toMatch(/guard-1 is away/);
      await program.shutdown();
      await until(async () => (await bindings(worker)).length === 0);
      await worker.call('session::ensure', { session_id: 's_2' });
      await client.turn('go');
      expect(ran).toHaveLength(2);
    } finally {
      await client.runtime.close();
    }
  });

  it('two workers on one folder, each with its own guard of the same kind: neither takes the other for its own', async () => {
    const one = await openWithGateway({ model: new ScriptedModel(...aCall()) });
    one.function('probe::run');
    const first = guard(urlOf(one));
    await synced(first.client);
    await until(async () => (await bindings(one)).length === 1);
    await one.call('session::ensure', { session_id: 's_1' }); // the guard is stored by then
    const two = await openWithGateway({ dataDir: one.dataDir });
    const second = guard(urlOf(two));
    await synced(second.client);
    await until(async () => (await bindings(two)).length === 2);
    await second.client.shutdown();
    await until(async () => (await bindings(two)).length === 1);
    await two.call('session::ensure', { session_id: 's_2' });
    await one.turn('go');
    expect(first.asked).toEqual(['probe::run']);
  });
});
