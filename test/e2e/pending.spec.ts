import { afterEach, expect, it } from 'vitest';
import type { HookInput, HookOutput } from '#libs/contracts';
import { scenarios } from '../support/replay.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(async () => {
  await rig.close();
});

const hold = (over: object = {}): HookOutput => ({ decision: 'hold', ...over });

scenarios('holds', () => {
  it('C01 the arguments that the holding hook set are what the function gets on release', async () => {
    rig = await TurnRig.open({
      model: new ScriptedModel({ content: [agentCall('c1', 'probe::run', { a: 1 })] }, { content: [text('done')] }),
    });
    const got = rig.function('probe::run');
    rig.function('gate::hold', () => hold({ mutations: { arguments: { a: 1, scope: 'x' } } }));
    rig.bind('harness::hook::pre-trigger', 'gate::hold');
    const { session_id, turn_id } = await rig.send('go');
    const parked = await rig.until(session_id, 'awaiting_functions');
    expect(parked.pending_function_calls).toEqual(['c1']);
    expect(got).toEqual([]);
    const release = { session_id, turn_id, function_call_id: 'c1', action: 'execute' };
    expect(await rig.call('harness::function::resolve', release)).toEqual({ resolved: true, turn_resumed: true });
    expect(await rig.call('harness::function::resolve', release)).toEqual({ resolved: false, turn_resumed: false });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(got).toEqual([{ a: 1, scope: 'x' }]);
  });

  it('goes on with the hooks after the one that held, not with those before', async () => {
    rig = await TurnRig.open({ model: new ScriptedModel({ content: [agentCall('c1', 'probe::run')] }, { content: [text('done')] }) });
    rig.function('probe::run');
    const asked: string[] = [];
    for (const [index, id] of ['gate::a', 'gate::b', 'gate::c'].entries()) {
      rig.function(id, () => {
        asked.push(id);
        return id === 'gate::b' ? hold() : undefined;
      });
      rig.bind('harness::hook::pre-trigger', id, { priority: index });
    }
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await rig.call('harness::function::resolve', { session_id, turn_id, function_call_id: 'c1', action: 'execute' });
    await rig.end(turn_id);
    expect(asked).toEqual(['gate::a', 'gate::b', 'gate::c']);
  });

  it('takes a delivered result, and resumes only when every call is settled', async () => {
    rig = await TurnRig.open({
      model: new ScriptedModel(
        { content: [agentCall('c1', 'probe::a'), agentCall('c2', 'probe::b'), agentCall('c3', 'probe::free')] },
        { content: [text('done')] },
      ),
    });
    const free = rig.function('probe::free');
    rig.function('gate::hold', () => hold());
    rig.bind('harness::hook::pre-trigger', 'gate::hold', { functions: ['probe::a', 'probe::b'] });
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    expect(free).toHaveLength(1);
    const deliver = (id: string, value: string): Promise<unknown> =>
      rig.call('harness::function::resolve', {
        session_id,
        turn_id,
        function_call_id: id,
        content: [{ type: 'text', text: value }],
        details: { by: 'test' },
      });
    expect(await deliver('c2', 'two')).toEqual({ resolved: true, turn_resumed: false });
    expect(await deliver('c1', 'one')).toEqual({ resolved: true, turn_resumed: true });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed' });
    const asked = rig.model.requests[1]?.messages ?? [];
    expect(asked.filter((m) => m.role === 'function_result').map((m) => m.function_call_id)).toEqual(['c1', 'c2', 'c3']);
  });

  it('C12 a hold that nobody settles times out, which is not a refusal; a late release does nothing', async () => {
    rig = await TurnRig.open({ model: new ScriptedModel({ content: [agentCall('c1', 'probe::run')] }, { content: [text('done')] }) });
    rig.function('probe::run');
    rig.function('gate::hold', () => hold({ pending_timeout_ms: 1 }));
    rig.bind('harness::hook::pre-trigger', 'gate::hold');
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await new Promise((resolve) => setTimeout(resolve, 5));
    const sweeps = await Promise.all([1, 2].map(() => rig.call<{ resolved: number }>('harness::sweep-pending')));
    expect(sweeps.map((s) => s.resolved).reduce((a, b) => a + b)).toBe(1);
    await rig.end(turn_id);
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details: { error: 'pending_timeout' } });
    expect(JSON.stringify(result?.content)).toContain('pending call timed out');
    expect(await rig.call('harness::function::resolve', { session_id, turn_id, function_call_id: 'c1', action: 'execute' })).toEqual({
      resolved: false,
      turn_resumed: false,
    });
  });

  it('C10 a parked turn is resumed by another runtime from stored state alone', async () => {
    const model = new ScriptedModel({ content: [agentCall('c1', 'probe::run')] }, { content: [text('done')] });
    rig = await TurnRig.open({ model });
    rig.function('gate::hold', () => hold());
    rig.bind('harness::hook::pre-trigger', 'gate::hold');
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await rig.close(true);
    rig = await TurnRig.open({ model, dataDir: rig.dataDir });
    expect(await rig.call('harness::function::resolve', { session_id, turn_id, function_call_id: 'c1', details: 42 })).toEqual({
      resolved: true,
      turn_resumed: true,
    });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
  });
});

scenarios('hooks', () => {
  it('C11 a pre-trigger hook that fails in any way denies, with a reason that names it', async () => {
    const calls = ['throws', 'slow', 'odd', 'gone'].map((name) => agentCall(name, `probe::${name}`));
    rig = await TurnRig.open({ model: new ScriptedModel({ content: calls }, { content: [text('done')] }) });
    for (const name of ['throws', 'slow', 'odd', 'gone']) rig.function(`probe::${name}`);
    rig.function('gate::throws', () => {
      throw new Error('no idea');
    });
    rig.function('gate::slow', () => new Promise(() => undefined));
    rig.function('gate::odd', () => ({ decision: 'maybe' }));
    for (const name of ['throws', 'slow', 'odd', 'gone'])
      rig.bind('harness::hook::pre-trigger', `gate::${name}`, { functions: [`probe::${name}`], timeout_ms: 50 });
    const { session_id } = await rig.turn('go');
    const results = await rig.results(session_id);
    expect(results.map((r) => [r.function_call_id, r.is_error, (r.details as { error: string }).error])).toEqual(
      calls.map((c) => [(c as { id: string }).id, true, 'hook_denied']),
    );
    for (const result of results) expect(JSON.stringify(result.content)).toContain(`gate::${result.function_call_id}`);
  });

  it('changes arguments, results, prompts and messages, and leaves its notes in the origin', async () => {
    rig = await TurnRig.open({
      model: new ScriptedModel({ content: [agentCall('c1', 'probe::run', { a: 1 })] }, { content: [text('done')] }),
    });
    const got = rig.function('probe::run', () => 'secret 123');
    rig.function('hook::args', (input) => ({
      decision: 'continue',
      mutations: { arguments: { ...((input as HookInput).call?.arguments as object), b: 2 } },
      annotations: { checked: true },
    }));
    rig.function('hook::mask', () => ({
      decision: 'continue',
      mutations: { content: [{ type: 'text', text: 'secret ***' }], details: null },
    }));
    rig.function('hook::prompt', () => ({
      decision: 'continue',
      mutations: {
        system_prompt: 'short',
        append_messages: [{ role: 'user', content: [{ type: 'text', text: 'remember' }], timestamp: 0 }],
      },
    }));
    rig.bind('harness::hook::pre-trigger', 'hook::args');
    rig.bind('harness::hook::post-trigger', 'hook::mask');
    rig.bind('harness::hook::pre-generate', 'hook::prompt');
    const { session_id } = await rig.turn('go');
    expect(got).toEqual([{ a: 1, b: 2 }]);
    const entry = (await rig.entries(session_id)).find((e) => e.kind === 'message' && e.message.role === 'function_result');
    expect(entry?.origin).toMatchObject({ checked: true });
    expect(JSON.stringify(entry)).not.toContain('123');
    expect(rig.model.requests[0]?.system_prompt).toBe('short');
    expect(JSON.stringify(rig.model.requests[0]?.messages.at(-1))).toContain('remember');
  });

  it('a pre-turn denial fails the turn before any spend', async () => {
    rig = await TurnRig.open();
    rig.function('hook::no', () => ({ decision: 'deny', reason: 'closed today' }));
    rig.bind('harness::hook::pre-turn', 'hook::no');
    const ended = await rig.turn('go');
    expect(ended).toMatchObject({ status: 'failed', reason: 'harness.pre_turn_denied', result_error: 'hook::no: closed today' });
    expect(rig.model.requests).toEqual([]);
  });
});

scenarios('sub-agents', () => {
  it('answers the parent with the child’s result', async () => {
    rig = await TurnRig.open({
      config: 'concurrency: 1\n',
      model: new ScriptedModel(
        { content: [agentCall('c1', 'harness::spawn', { task: 'add' })] },
        { content: [text('three')] },
        { content: [text('it is three')] },
      ),
    });
    const { session_id, turn_id } = await rig.send('go');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'it is three' });
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: false, details: { status: 'completed', result: 'three' } });
    const details = result?.details as { child_session_id: string; child_turn_id: string } | undefined;
    const child = details?.child_session_id;
    expect(await rig.call('session::get', { session_id: child })).toMatchObject({
      meta: { metadata: { parent_session_id: session_id, parent_turn_id: turn_id, function_call_id: 'c1', depth: 1 } },
    });
    expect((await rig.status(session_id))?.children).toEqual([
      { function_call_id: 'c1', session_id: child, turn_id: details?.child_turn_id },
    ]);
  });

  it('C35 a child that fails is an error for its parent', async () => {
    const failed = {
      role: 'assistant' as const,
      content: [],
      model: 'm',
      provider: 'p',
      stop_reason: 'error' as const,
      error_kind: 'permanent' as const,
      error_message: 'bad key',
      timestamp: 0,
    };
    rig = await TurnRig.open({
      model: new ScriptedModel(
        { content: [agentCall('c1', 'harness::spawn', { task: 'add' })] },
        { frames: [{ type: 'error', error: failed }] },
        { content: [text('sorry')] },
      ),
    });
    const { session_id } = await rig.turn('go');
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details: { status: 'failed' } });
    expect(JSON.stringify(result?.content)).toContain('bad key');
  });

  it('C34 refuses what is too deep or too many, and a stop ends the whole tree', async () => {
    const model = new ScriptedModel();
    model.fallback = () => ({
      content: [agentCall('c1', 'harness::spawn', { task: 'again' }), agentCall('c2', 'harness::spawn', { task: 'again' })],
    });
    rig = await TurnRig.open({ model, config: 'max_depth: 2\nmax_children: 1\ndefault_max_turns: 2\n' });
    const ended = await rig.turn('go');
    expect(ended.status).toBe('completed');
    const results = await rig.results(ended.session_id);
    expect(results.find((r) => r.function_call_id === 'c2')).toMatchObject({
      is_error: true,
      details: { error: 'harness/spawn_fanout_exceeded' },
    });
    const { sessions } = await rig.call<{ sessions: unknown[] }>('session::list', {});
    expect(sessions.length).toBeLessThanOrEqual(3);
  });

  it('a stop of the parent stops its children', async () => {
    const model = new ScriptedModel(
      { content: [agentCall('c1', 'harness::spawn', { task: 'wait' })] },
      (_request, writer) => new Promise((resolve) => writer.signal.addEventListener('abort', () => resolve())),
    );
    rig = await TurnRig.open({ model });
    const { session_id, turn_id } = await rig.send('go');
    const report = await rig.until(session_id, 'awaiting_functions');
    const child = report.children[0]?.session_id ?? '';
    expect(await rig.call('harness::stop', { session_id })).toEqual({ stopping: true });
    expect((await rig.end(turn_id)).status).toBe('cancelled');
    expect((await rig.until(child, 'cancelled')).status).toBe('cancelled');
  });
});

scenarios('output contract', () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const options = { output: { type: 'json' as const, schema } };

  it('asks again with the failing field, then gives the value', async () => {
    rig = await TurnRig.open({
      model: new ScriptedModel({ content: [text('{"n": "x"}')] }, { content: [text('```json\n{"n": 3}\n```')] }),
    });
    const ended = await rig.turn('go', { options });
    expect(ended).toMatchObject({ status: 'completed', result: { n: 3 }, result_error: null });
  });

  it('a broken schema is refused at send, before any spend', async () => {
    rig = await TurnRig.open();
    await expect(rig.send('go', { options: { output: { type: 'json', schema: { type: 'nope' } } } })).rejects.toThrow(
      /harness\/invalid_request: options\.output\.schema/,
    );
  });

  it('ends with the text and why after the last nudge', async () => {
    rig = await TurnRig.open({ model: new ScriptedModel({ content: [text('a')] }, { content: [text('b')] }, { content: [text('c')] }) });
    const ended = await rig.turn('go', { options });
    expect(ended).toMatchObject({ status: 'completed', result: 'c' });
    expect(ended.result_error).toContain('not one JSON value');
    rig.model.assertDone();
  });
});
