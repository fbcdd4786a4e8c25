import { describe, expect, it } from 'vitest';
import { textOf } from '#libs/contracts';
import { agentCall, ScriptedModel } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { Program } from './programs.js';
import { openWithGateway, urlOf } from './remote.js';

const calling = (id: string) => [asks(agentCall('c1', id, { a: 1 })), says('done')];

describe('programs in processes of their own', () => {
  it('a function: called for a model with its provenance; killed in the middle, the model hears that it may have run', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(...calling('far::run'), ...calling('far::run')) });
    const first = await Program.start(urlOf(rig), 'function');
    const one = await rig.turn('go');
    expect(await first.until('called')).toMatchObject({ payload: { a: 1 }, metadata: { agent: { session_id: one.session_id, depth: 0 } } });
    await first.kill();
    const second = await Program.start(urlOf(rig), 'function', 'hang');
    const { session_id, turn_id } = await rig.send('go');
    await second.until('called');
    await second.kill();
    expect((await rig.end(turn_id)).status).toBe('completed');
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details: { error: 'function_unavailable' } });
    expect(textOf(result?.content ?? [])).toContain('may have run');
  });

  it('what a function calls for a model is known as such, though its handler passes nothing on', async () => {
    const rig = await openWithGateway();
    let seen: unknown;
    rig.runtime.bus.registerFunction({ id: 'local::seen' }, (_, context) => {
      seen = context.metadata;
      return null;
    });
    await Program.start(urlOf(rig), 'function');
    const agent = { session_id: 's_1', turn_id: 't_1', depth: 2 };
    await rig.call('far::nested', {}, { agent });
    expect(seen).toEqual({ agent });
  });

  it.each([
    ['deny', 'the program says no'],
    ['mutate', '{"changed":true}'],
  ])('a hook that says %s is heard', async (answer, result) => {
    const rig = await openWithGateway({ model: new ScriptedModel(...calling('probe::run')) });
    rig.function('probe::run', (payload) => payload);
    await Program.start(urlOf(rig), 'hook', answer);
    const { session_id } = await rig.turn('go');
    expect(textOf((await rig.results(session_id))[0]?.content ?? [])).toContain(result);
  });

  it('a hook that holds can be gone when the call is released', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(...calling('probe::run')) });
    const ran = rig.function('probe::run');
    const hook = await Program.start(urlOf(rig), 'hook', 'hold');
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await hook.kill();
    const [pending] = (await rig.status(session_id))?.pending_function_calls ?? [];
    await rig.release(session_id, turn_id, pending ?? '');
    expect((await rig.end(turn_id)).status).toBe('completed');
    expect(ran).toHaveLength(1);
  });

  it('C07 a hook killed while it is asked denies, and the same program started anew is asked again, once', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(...calling('probe::run'), ...calling('probe::run')) });
    const ran = rig.function('probe::run');
    const first = await Program.start(urlOf(rig), 'hook', 'hang');
    const { session_id, turn_id } = await rig.send('go');
    await first.until('asked');
    await first.kill();
    await rig.end(turn_id);
    expect((await rig.results(session_id))[0]).toMatchObject({ details: { error: 'hook_denied', hook: 'far::hook' } });
    const second = await Program.start(urlOf(rig), 'hook', 'continue');
    await rig.turn('go');
    expect([second.told.filter(({ event }) => event === 'asked').length, ran.length]).toEqual([1, 1]);
  });

  it('a provider killed in the middle of a stream fails the generation, and what it said is kept', async () => {
    const rig = await openWithGateway();
    const provider = await Program.start(urlOf(rig), 'provider');
    await provider.until('announced');
    const { session_id, turn_id } = await rig.send('go', { model: 'far-1', provider: 'far' });
    await rig.seen('text', (event): event is Extract<typeof event, { type: 'text_delta' }> => event.type === 'text_delta');
    await provider.kill();
    expect((await rig.end(turn_id)).status).toBe('failed');
    expect(JSON.stringify(await rig.entries(session_id))).toContain('I th');
  });

  it('an event whose consumer is killed over it is delivered to the next one', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(says('done')) });
    const first = await Program.start(urlOf(rig), 'consumer', 'hang');
    const { turn_id } = await rig.turn('go');
    expect(await first.until('ended')).toBe(turn_id);
    await first.kill();
    const second = await Program.start(urlOf(rig), 'consumer');
    expect(await second.until('ended')).toBe(turn_id);
  });

  it('a sibling killed in a call fails that call, and takes its place again when it is started anew', async () => {
    const rig = await openWithGateway({ siblings: '-state' });
    const first = await Program.start(urlOf(rig), 'sibling', 'hang');
    const call = rig.call('state::get', { scope: 's', key: 'k' });
    const failed = expect(call).rejects.toThrow(/invocation_stopped/);
    await first.kill();
    await failed;
    await Program.start(urlOf(rig), 'sibling');
    expect(await rig.call('state::get', { scope: 's', key: 'k' })).toMatchObject({ mine: 'k' });
  });
});
