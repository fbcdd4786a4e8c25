import { afterEach, describe, expect, it } from 'vitest';
import type { HookInput, JsonValue } from '#libs/contracts';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(async () => {
  await rig.close();
});

interface Pending {
  session_id: string;
  function_call_id: string;
  function_id: string;
  arguments_excerpt: JsonValue;
  depth: number;
}

const oneCall = (...calls: [id: string, fn: string, args?: JsonValue][]): ScriptedModel =>
  new ScriptedModel({ content: calls.map(([id, fn, args]) => agentCall(id, fn, args ?? {})) }, { content: [text('done')] });
const mode = (session_id: string, to: string): Promise<unknown> => rig.call('approval::set-mode', { session_id, mode: to });
const pendings = async (session_id?: string): Promise<Pending[]> =>
  (await rig.call<{ pending: Pending[] }>('approval::list-pending', { session_id })).pending;
const ids = async (): Promise<string[]> => (await pendings()).map((pending) => pending.function_call_id);
const resolve = (
  session_id: string,
  function_call_id: string,
  decision: 'allow' | 'deny',
  more: object = {},
): Promise<{ resolved: boolean }> => rig.call('approval::resolve', { session_id, function_call_id, decision, ...more });
/** Gathers the events of the inbox. */
function events(): { type: string; outcome?: string; reason?: string }[] {
  const seen: { type: string; outcome?: string; reason?: string }[] = [];
  for (const name of ['pending-created', 'pending-resolved'])
    rig.on(`approval::${name}`, `on::${name}`, (event: { outcome?: string; reason?: string }) => {
      seen.push({
        type: name,
        ...(event.outcome === undefined ? {} : { outcome: event.outcome }),
        ...(event.reason === undefined ? {} : { reason: event.reason }),
      });
    });
  return seen;
}
async function waitFor(check: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; !(await check()); ) {
    if (Date.now() > end) throw new Error('it did not come');
    await new Promise((done) => setTimeout(done, 5));
  }
}

describe('a session in mode manual', () => {
  it('parks a call until a person allows it, then it runs once with what was shown', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::run', { a: 1 }]) });
    const got = rig.function('probe::run');
    const seen = events();
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    expect(got).toEqual([]);
    expect(await pendings()).toMatchObject([
      { session_id: 's', turn_id, function_call_id: 'c1', function_id: 'probe::run', arguments_excerpt: { a: 1 }, depth: 0 },
    ]);
    expect(await rig.call('approval::get-pending', { session_id: 's', function_call_id: 'c1' })).toMatchObject({ arguments: { a: 1 } });
    expect(await resolve('s', 'c1', 'allow')).toEqual({ resolved: true, turn_resumed: true });
    expect(await resolve('s', 'c1', 'allow')).toEqual({ resolved: false });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(got).toEqual([{ a: 1 }]);
    await waitFor(() => seen.length === 2);
    expect(seen).toEqual([{ type: 'pending-created' }, { type: 'pending-resolved', outcome: 'allow' }]);
    expect(rig.faults()).toEqual([]);
  });

  it('C12 tells the model of a denial and its reason, which differs from a timeout', async () => {
    rig = await TurnRig.open({
      model: oneCall(['c1', 'probe::run'], ['c2', 'probe::run']),
      config: 'default_pending_timeout_ms: 600000\n',
    });
    const got = rig.function('probe::run');
    rig.function('gate::short', () => ({ decision: 'hold', pending_timeout_ms: 1 }));
    const seen = events();
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    await resolve('s', 'c1', 'deny', { reason: 'not on a Friday' });
    expect(
      await rig.call('harness::function::resolve', { session_id: 's', turn_id, function_call_id: 'c2', details: 'by hand' }),
    ).toMatchObject({ resolved: true });
    await rig.end(turn_id);
    const [denied, other] = await rig.results('s');
    expect(denied).toMatchObject({
      is_error: true,
      details: { error: 'approval_denied', reason: 'not on a Friday', function_id: 'probe::run' },
    });
    expect(JSON.stringify(denied?.content)).toContain('a person denied it, saying: not on a Friday');
    expect(JSON.stringify(denied)).not.toContain('timed out');
    expect(other).toMatchObject({ is_error: false, details: 'by hand' });
    expect(got).toEqual([]);
    await waitFor(() => seen.length === 4);
    expect(seen.slice(2)).toEqual([
      { type: 'pending-resolved', outcome: 'deny', reason: 'not on a Friday' },
      { type: 'pending-resolved', outcome: 'aborted' },
    ]);
    expect(await pendings()).toEqual([]);
  });

  it('C12 lets nobody answer after the time is over', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::run']), config: 'default_pending_timeout_ms: 1\n' });
    rig.function('probe::run');
    const seen = events();
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    await waitFor(
      async () => (await rig.call<{ resolved: number }>('harness::sweep-pending')).resolved > 0 || (await pendings()).length === 0,
    );
    expect(await resolve('s', 'c1', 'allow')).toEqual({ resolved: false });
    await rig.end(turn_id);
    expect(await rig.results('s')).toMatchObject([{ is_error: true, details: { error: 'pending_timeout' } }]);
    await waitFor(() => seen.length === 2);
    expect(seen[1]).toEqual({ type: 'pending-resolved', outcome: 'timeout' });
  });

  it('empties the inbox when the turn is stopped', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::run']) });
    rig.function('probe::run');
    const seen = events();
    await mode('s', 'manual');
    await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    await rig.stop('s');
    await waitFor(() => seen.length === 2);
    expect(seen[1]).toEqual({ type: 'pending-resolved', outcome: 'aborted' });
    expect(await pendings()).toEqual([]);
    await rig.call('session::delete', { session_id: 's' });
    expect(await rig.call('approval::get-settings', { session_id: 's' })).toMatchObject({ source: 'defaults' });
  });

  it('C09 an approval that comes before the park is on disk is not lost: the next try has it', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::run', { big: 'x'.repeat(400_000) }]) });
    const got = rig.function('probe::run');
    const early: boolean[] = [];
    rig.on(
      'harness::hook::pre-trigger',
      'hook::eager',
      async ({ session_id, call }: HookInput) => {
        early.push((await resolve(session_id, call?.id ?? '', 'allow')).resolved);
        return undefined;
      },
      { priority: 999_999 },
    );
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    let tries = 0;
    await waitFor(async () => {
      tries += 1;
      return (await resolve('s', 'c1', 'allow')).resolved;
    });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed' });
    expect({ early, calls: got.length, tried: tries > 0 }).toEqual({ early: [false], calls: 1, tried: true });
  });

  it('C10 C01 is answered from stored state after a restart, with the arguments that hooks had set', async () => {
    const model = oneCall(['c1', 'probe::run', { a: 1 }]);
    rig = await TurnRig.open({ model });
    rig.on('harness::hook::pre-trigger', 'hook::stamp', () => ({ decision: 'continue', mutations: { arguments: { a: 1, scope: 'x' } } }));
    rig.function('probe::run');
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    await rig.close(true);
    const got: unknown[] = [];
    rig = await TurnRig.open({
      model,
      dataDir: rig.dataDir,
      prepare: (runtime) => {
        runtime.bus.registerFunction({ id: 'probe::run' }, (payload) => {
          got.push(payload);
          return {};
        });
      },
    });
    expect(await pendings('s')).toMatchObject([{ function_call_id: 'c1', arguments_excerpt: { a: 1, scope: 'x' } }]);
    expect(await rig.call('approval::get-settings', { session_id: 's' })).toMatchObject({ settings: { mode: 'manual' }, source: 'stored' });
    expect(await resolve('s', 'c1', 'allow')).toMatchObject({ resolved: true });
    await rig.end(turn_id);
    expect(got).toEqual([{ a: 1, scope: 'x' }]);
  });

  it('remembers an approval for the session, also for what waits already', async () => {
    rig = await TurnRig.open({
      model: new ScriptedModel(
        { content: [agentCall('c1', 'probe::run'), agentCall('c2', 'probe::run'), agentCall('c3', 'probe::other')] },
        { content: [agentCall('c4', 'probe::run')] },
        { content: [text('done')] },
      ),
    });
    const got = rig.function('probe::run');
    rig.function('probe::other');
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    expect(await ids()).toEqual(['c1', 'c2', 'c3']);
    await resolve('s', 'c1', 'allow', { grant_scope: 'session' });
    expect(await ids()).toEqual(['c3']);
    await resolve('s', 'c3', 'deny');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed' });
    expect(got).toHaveLength(3);
    expect(await rig.call('approval::get-settings', { session_id: 's' })).toMatchObject({
      settings: { mode: 'manual', approved_always: [{ function_id: 'probe::run', granted_by: 'user_click' }] },
    });
    await rig.call('approval::remove-always-allow', { session_id: 's', function_id: 'probe::run' });
    expect(await rig.call('approval::evaluate', { session_id: 's', function_id: 'probe::run' })).toMatchObject({
      verdict: 'needs_approval',
    });
  });

  it('C03 one of many approvals at once counts', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'harness::spawn', { task: 'add' }]).plays({ content: [text('parent is done')] }) });
    await mode('s', 'manual');
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    const answers = await Promise.all(Array.from({ length: 5 }, () => resolve('s', 'c1', 'allow')));
    expect(answers.filter(({ resolved }) => resolved)).toHaveLength(1);
    await rig.end(turn_id);
    expect((await rig.status('s'))?.children).toHaveLength(1);
  });
});

describe('sub-agents', () => {
  it('go by the settings of the session at the root, also those of a child of a child', async () => {
    rig = await TurnRig.open({
      model: new ScriptedModel(
        { content: [agentCall('c1', 'harness::spawn', { task: 'one' })] },
        { content: [agentCall('c2', 'harness::spawn', { task: 'two' })] },
        { content: [agentCall('c3', 'probe::run')] },
        { content: [text('deep')] },
        { content: [text('middle')] },
        { content: [text('top')] },
      ),
    });
    const got = rig.function('probe::run');
    await mode('s', 'manual');
    await rig.call('approval::approve-always', { session_id: 's', function_id: 'harness::spawn' });
    const { turn_id } = await rig.send('go', { session_id: 's' });
    await waitFor(async () => (await pendings()).length === 1);
    const [waiting] = await pendings();
    expect(waiting).toMatchObject({ function_call_id: 'c3', depth: 2 });
    expect(got).toEqual([]);
    await resolve(waiting?.session_id ?? '', 'c3', 'allow', { grant_scope: 'always' });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'top' });
    expect(got).toHaveLength(1);
    expect(await rig.call('approval::evaluate', { session_id: 's', function_id: 'probe::run' })).toEqual({ verdict: 'allow' });
    await rig.call('session::delete', { session_id: 's' });
    expect(await rig.call('approval::get-settings', { session_id: waiting?.session_id })).toMatchObject({ settings: { mode: 'manual' } });
  });
});

describe('mode auto', () => {
  it('lets pass what only reads, what the session and the operator list, and asks about the rest', async () => {
    rig = await TurnRig.open({
      model: oneCall(['c1', 'coder::info'], ['c2', 'coder::create-file'], ['c3', 'probe::unknown'], ['c4', 'web::fetch']),
    });
    rig.function('probe::unknown');
    await mode('s', 'auto');
    await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    expect(await ids()).toEqual(['c2', 'c3', 'c4']);
    await rig.call('approval::add-always-allow', { session_id: 's', function_id: 'probe::unknown' });
    const verdict = async (function_id: string): Promise<string> =>
      (await rig.call<{ verdict: string }>('approval::evaluate', { session_id: 's', function_id })).verdict;
    expect(await Promise.all(['probe::unknown', 'coder::search', 'coder::update-file', 'shell::exec'].map(verdict))).toEqual([
      'allow',
      'allow',
      'needs_approval',
      'needs_approval',
    ]);
    await rig.stop('s');
  });
});

describe('mode full', () => {
  it('costs no commit, and asks about nothing', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::run'], ['c2', 'probe::run']), config: 'trace_turns: 0\n' });
    rig.function('probe::run');
    await mode('other', 'manual');
    const before = rig.runtime.commits;
    await rig.turn('go', { session_id: 's' });
    expect(rig.runtime.commits - before).toBeLessThanOrEqual(5); // four, and one for the second call
    expect(await rig.call('approval::get-settings', { session_id: 's' })).toMatchObject({ settings: { mode: 'full' }, source: 'defaults' });
  });

  it('refuses approval::* and configuration::* also where the operator lifts them from the list of what no model reaches', async () => {
    rig = await TurnRig.open({
      config: "lift_never: ['approval::*', 'configuration::*']\n",
      model: oneCall(['c1', 'approval::set-mode', { session_id: 's', mode: 'full' }], ['c2', 'configuration::list']),
    });
    await rig.turn('go', { session_id: 's' });
    expect(await rig.results('s')).toMatchObject([
      { is_error: true, details: { error: 'hook_denied', hook: 'approval::gate' } },
      { is_error: true, details: { error: 'hook_denied', hook: 'approval::gate' } },
    ]);
    expect(await rig.call('approval::get-settings', { session_id: 's' })).toMatchObject({ source: 'defaults' });
  });
});

it('asks from the next call on when the mode changes in the middle of a message', async () => {
  rig = await TurnRig.open({ model: oneCall(['c1', 'probe::first'], ['c2', 'probe::second']) });
  rig.function('probe::first', async () => {
    await mode('s', 'manual');
    return {};
  });
  const second = rig.function('probe::second');
  await rig.send('go', { session_id: 's' });
  await rig.until('s', 'awaiting_functions');
  expect({ waits: await ids(), second }).toEqual({ waits: ['c2'], second: [] });
  await rig.stop('s');
});

it('tells what waits without secrets, and no more of it than fits', async () => {
  process.env['PROBE_API_KEY'] = 'sesame-open-0123456789';
  try {
    rig = await TurnRig.open({
      model: oneCall([
        'c1',
        'probe::run',
        { note: 'use sesame-open-0123456789 now', password: 'hunter2', body: 'y'.repeat(50_000), list: Array(500).fill(1) },
      ]),
    });
    rig.function('probe::run');
    const created: unknown[] = rig.on('approval::pending-created', 'on::created', () => null);
    await mode('s', 'manual');
    await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    await waitFor(() => created.length === 1);
    for (const told of [await pendings(), created]) {
      const said = JSON.stringify(told);
      expect(said.length).toBeLessThan(6_000);
      expect(said).not.toContain('sesame');
      expect(said).not.toContain('hunter2');
    }
    const whole = JSON.stringify(await rig.call('approval::get-pending', { session_id: 's', function_call_id: 'c1' }));
    expect(whole).toContain('hunter2');
    expect(whole).not.toContain('sesame');
    await rig.stop('s');
  } finally {
    delete process.env['PROBE_API_KEY'];
  }
});

describe('the gate stays shut', () => {
  it('for a model that has a function pass its call on to approval::*', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::pass']) });
    const answers: string[] = [];
    rig.runtime.bus.registerFunction({ id: 'probe::pass' }, async (_, context) => {
      const targets: [string, object][] = [
        ['approval::set-mode', { session_id: 's', mode: 'full' }],
        ['harness::function::resolve', { session_id: 's', turn_id: 't', function_call_id: 'c1', action: 'execute' }],
        ['configuration::get', { id: 'harness' }],
        ['harness::status', { session_id: 's' }],
      ];
      for (const [function_id, payload] of targets) {
        const outcome = context.trigger({ function_id, payload });
        answers.push(
          await outcome.then(
            () => 'answered',
            (error: unknown) => (error as { code: string }).code,
          ),
        );
      }
      return 'ok';
    });
    await rig.turn('go', { session_id: 's' });
    expect(answers).toEqual(['FORBIDDEN', 'FORBIDDEN', 'FORBIDDEN', 'answered']);
  });

  it('for everybody who would take its binding back, since that is harness itself', async () => {
    rig = await TurnRig.open({ model: oneCall(['c1', 'probe::run']) });
    const called = rig.function('probe::run');
    const { registered_triggers } = await rig.call<{ registered_triggers: { id: string }[] }>('engine::registered-triggers::list', {
      function_id: 'approval::gate',
      include_internal: true,
    });
    expect(registered_triggers).toHaveLength(1);
    await expect(rig.call('engine::unregister_trigger', { id: registered_triggers[0]?.id })).rejects.toMatchObject({ code: 'FORBIDDEN' });
    await mode('s', 'manual');
    await rig.send('go', { session_id: 's' });
    await rig.until('s', 'awaiting_functions');
    expect(called).toEqual([]);
    await rig.stop('s');
  });
});
