import { afterEach, expect, it } from 'vitest';
import { type Entry, type HookInput, type HookOutput, type JsonObject, textOf } from '#libs/contracts';
import { scenarios } from '../support/replay.js';
import { agentCall, type Scripted, ScriptedModel, text } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(async () => {
  expect(rig.faults()).toEqual([]);
  await rig.close();
});

const open = async (...script: Scripted[]): Promise<void> => {
  rig = await TurnRig.open({ model: new ScriptedModel(...script) });
};
/** One call of `probe::run`, then the end. */
const oneCall = (args = {}): Scripted[] => [asks(agentCall('c1', 'probe::run', args)), says('done')];
const on = (point: string, id: string, run: (input: HookInput) => unknown, config: JsonObject = {}): HookInput[] =>
  rig.on(`harness::hook::${point}`, id, run, config) as HookInput[];
const originOf = (entries: readonly Entry[], role: string): unknown =>
  entries.find((e) => e.kind === 'message' && e.message.role === role)?.origin;
const errorOf = (result: { details: unknown } | undefined): unknown => (result?.details as { error?: unknown } | null)?.error;
const numberOf = (value: unknown): number => (value as { n: number }).n;
const pathOf = (value: unknown): string => (value as { path: string }).path;
const never = (): Promise<never> => new Promise(() => undefined);

scenarios('the chain of a point', () => {
  it('goes by priority, then by function id, and each hook sees what the one before left', async () => {
    await open(...oneCall({ path: 'x' }));
    const got = rig.function('probe::run');
    const add = (id: string, config: JsonObject = {}): void =>
      void on(
        'pre-trigger',
        id,
        ({ call }) => ({ decision: 'continue', mutations: { arguments: { path: `${pathOf(call?.arguments)} ${id}` } } }),
        config,
      );
    add('hook::z', { priority: -1 });
    add('hook::c');
    add('hook::b');
    add('hook::last', { priority: 10 });
    add('hook::a', { priority: 0 });
    await rig.turn('go');
    expect(got).toEqual([{ path: 'x hook::z hook::a hook::b hook::c hook::last' }]);
  });

  it('ends with the first denial: what comes after is not asked, and the call is not made', async () => {
    await open(...oneCall());
    const got = rig.function('probe::run');
    on('pre-trigger', 'hook::a', () => undefined);
    on('pre-trigger', 'hook::b', () => ({ decision: 'deny', reason: 'not on a Sunday' }));
    const later = on('pre-trigger', 'hook::c', () => ({ decision: 'hold' }));
    const { session_id } = await rig.turn('go');
    expect([got, later]).toEqual([[], []]);
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details: { error: 'hook_denied', hook: 'hook::b' } });
    expect(textOf(result?.content ?? [])).toContain('not on a Sunday');
  });

  it('holds a function once, however often it is bound, at its earliest place and for all its globs', async () => {
    await open(asks(agentCall('c1', 'probe::a'), agentCall('c2', 'probe::b'), agentCall('c3', 'probe::c')), says('done'));
    for (const id of ['probe::a', 'probe::b', 'probe::c']) rig.function(id);
    const order: string[] = [];
    const twice = on('pre-trigger', 'hook::twice', ({ call }) => void order.push(`twice ${call?.id}`), {
      functions: ['probe::a'],
      priority: 5,
    });
    rig.bind('harness::hook::pre-trigger', 'hook::twice', { functions: ['probe::a'], priority: 5 });
    rig.bind('harness::hook::pre-trigger', 'hook::twice', { functions: ['probe::b'], priority: -5 });
    on('pre-trigger', 'hook::once', ({ call }) => void order.push(`once ${call?.id}`));
    await rig.turn('go');
    expect(twice).toHaveLength(2);
    expect(order).toEqual(['twice c1', 'once c1', 'twice c2', 'once c2', 'once c3']);
  });

  it('leaves out a binding that was taken back, while another of the same function stays', async () => {
    await open(...oneCall(), ...oneCall());
    rig.function('probe::run');
    const asked = rig.function('hook::it', () => undefined);
    const first = rig.bind('harness::hook::pre-trigger', 'hook::it');
    const second = rig.bind('harness::hook::pre-trigger', 'hook::it');
    first.unregister();
    await rig.turn('go');
    expect(asked).toHaveLength(1);
    second.unregister();
    await rig.turn('go');
    expect(asked).toHaveLength(1);
  });

  it('is only consulted for calls that its globs match', async () => {
    await open(asks(agentCall('c1', 'files::read'), agentCall('c2', 'files::write'), agentCall('c3', 'mail::write')), says('done'));
    for (const id of ['files::read', 'files::write', 'mail::write']) rig.function(id);
    const pre = on('pre-trigger', 'hook::pre', () => undefined, { functions: ['files::*'] });
    const post = on('post-trigger', 'hook::post', () => undefined, { functions: ['*::write', 'nothing::*'] });
    await rig.turn('go');
    expect(pre.map(({ call }) => call?.id)).toEqual(['c1', 'c2']);
    expect(post.map(({ result }) => result?.function_call_id)).toEqual(['c2', 'c3']);
  });

  it('gets the facts of its point and nothing of the others', async () => {
    await open(asks(agentCall('c1', 'probe::run', { a: 1 })), says('done'));
    rig.function('probe::run', () => ({ answer: 42 }));
    const seen = new Map<string, HookInput>();
    for (const point of ['pre-turn', 'pre-generate', 'post-generate', 'pre-trigger', 'post-trigger']) {
      on(point, `hook::${point}`, (input) => {
        if (!seen.has(input.point)) seen.set(input.point, input);
      });
    }
    const { session_id, turn_id } = await rig.turn('go');
    const base = { session_id, turn_id, step: 0, depth: 0 };
    expect(seen.get('pre_turn')).toEqual({ point: 'pre_turn', ...base });
    expect(seen.get('pre_trigger')).toEqual({
      point: 'pre_trigger',
      ...base,
      call: { id: 'c1', function_id: 'probe::run', arguments: { a: 1 } },
    });
    expect(seen.get('post_trigger')).toEqual({
      point: 'post_trigger',
      ...base,
      result: {
        function_call_id: 'c1',
        function_id: 'probe::run',
        content: [{ type: 'text', text: '{"answer":42}' }],
        is_error: false,
        details: { answer: 42 },
      },
    });
    expect(seen.get('pre_generate')?.generate).toMatchObject({ model: 'scripted-1', provider: 'scripted', messages: [{ role: 'user' }] });
    expect(seen.get('post_generate')?.generated?.message).toMatchObject({ role: 'assistant', stop_reason: 'function_call' });
    for (const [point, input] of seen) expect([point, Object.keys(input).length]).toEqual([point, point === 'pre_turn' ? 5 : 6]);
  });
});

scenarios('C11 a hook that fails', () => {
  const ways: [string, (input: HookInput) => unknown][] = [
    ['throws', () => Promise.reject(new Error('no idea'))],
    ['never answers', never],
    ['decides what there is not', () => ({ decision: 'maybe' })],
    ['answers with something else', () => 'yes'],
    ['asks for a change that the point does not have', () => ({ decision: 'continue', mutations: { everything: true } })],
  ];

  it.each(ways)('because it %s: closed guards stop the turn or the call, open ones are passed over, in time', async (_how, run) => {
    const guards = ['pre-turn', 'pre-generate', 'pre-trigger'] as const;
    rig = await TurnRig.open();
    rig.model.fallback = ({ messages }) => (messages.at(-1)?.role === 'user' ? asks(agentCall('c1', 'probe::run')) : says('done'));
    const got = rig.function('probe::run');
    rig.function('hook::bad', (input) => run(input as HookInput));
    for (const point of guards) {
      const binding = rig.bind(`harness::hook::${point}`, 'hook::bad', { timeout_ms: 40 });
      const started = performance.now();
      const ended = await rig.turn('go');
      expect(performance.now() - started).toBeLessThan(1_500);
      expect([point, ended.status]).toEqual([point, point === 'pre-trigger' ? 'completed' : 'failed']);
      if (point === 'pre-trigger')
        expect((await rig.results(ended.session_id))[0]).toMatchObject({
          is_error: true,
          details: { error: 'hook_denied', hook: 'hook::bad' },
        });
      else
        expect(ended).toMatchObject({
          reason: `harness.${point.replace('-', '_')}_denied`,
          result_error: expect.stringContaining('hook::bad') as string,
        });
      binding.unregister();
    }
    expect(got).toEqual([]);
    for (const point of guards) rig.bind(`harness::hook::${point}`, 'hook::bad', { timeout_ms: 40, on_error: 'fail_open' });
    expect(await rig.turn('go')).toMatchObject({ status: 'completed', result: 'done' });
    expect(got).toHaveLength(1);
  });

  it.each(ways)('because it %s: observers are passed over', async (_how, run) => {
    await open(...oneCall());
    rig.function('probe::run', () => 'the result');
    on('post-generate', 'hook::bad', run, { timeout_ms: 40 });
    rig.bind('harness::hook::post-trigger', 'hook::bad', { timeout_ms: 40 });
    const { session_id, status } = await rig.turn('go');
    expect(status).toBe('completed');
    expect((await rig.results(session_id))[0]).toMatchObject({ is_error: false, content: [{ text: 'the result' }] });
  });

  it('behind a call whose result it must see, when closed, keeps the result from the model', async () => {
    await open(...oneCall());
    const got = rig.function('probe::run', () => 'a secret');
    on('post-trigger', 'hook::mask', () => Promise.reject(new Error('cannot mask')), { on_error: 'fail_closed' });
    const { session_id, status } = await rig.turn('go');
    expect([status, got.length]).toEqual(['completed', 1]);
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details: { error: 'hook_denied', hook: 'hook::mask' } });
    expect(textOf(result?.content ?? [])).toContain('was called');
    expect(JSON.stringify(rig.disk(session_id))).not.toContain('a secret');
  });

  it('because its worker is away: the binding stays and counts as failed', async () => {
    await open(...oneCall(), ...oneCall());
    const got = rig.function('probe::run');
    rig.bind('harness::hook::pre-trigger', 'gate::gone');
    const { session_id } = await rig.turn('go');
    expect((await rig.results(session_id))[0]).toMatchObject({ details: { error: 'hook_denied', hook: 'gate::gone' } });
    expect(got).toEqual([]);
    const back = rig.runtime.bus.registerFunction({ id: 'gate::gone' }, () => undefined);
    await rig.turn('go');
    expect(got).toHaveLength(1);
    back.unregister();
  });
});

scenarios('a binding', () => {
  it.each([
    [{ on_error: 'sometimes' }, /harness\/invalid_request.*on_error/],
    [{ priority: 'high' }, /harness\/invalid_request.*priority/],
    [{ timeout_ms: -1 }, /harness\/invalid_request.*timeout_ms/],
    [{ functions: 'probe::*' }, /harness\/invalid_request.*functions/],
    [{ functions: ['probe::**'] }, /harness\/invalid_request.*functions\[0\]/],
    [{ functions: ['ok::*', '{a,b}::c'] }, /harness\/invalid_request.*functions\[1\]/],
    [{ function: ['probe::*'] }, /harness\/invalid_request.*function is not a known field/],
  ])('with the configuration %j is refused with the name of the field', async (config, message) => {
    await open(...oneCall());
    rig.function('probe::run');
    const asked = rig.function('hook::it');
    await expect(
      rig.call('engine::register_trigger', { trigger_type: 'harness::hook::pre-trigger', function_id: 'hook::it', config }),
    ).rejects.toThrow(message);
    await rig.turn('go');
    expect(asked).toEqual([]);
  });

  it('of functions is only for the points of calls', async () => {
    await open();
    const config = { functions: ['probe::*'] };
    await expect(
      rig.call('engine::register_trigger', { trigger_type: 'harness::hook::pre-turn', function_id: 'hook::it', config }),
    ).rejects.toThrow(/functions is for pre-trigger/);
  });

  it('C07 made again after a restart guards as before', async () => {
    const model = new ScriptedModel(...oneCall(), ...oneCall());
    rig = await TurnRig.open({ model });
    const bindAll = (): unknown[] => {
      const got = rig.function('probe::run');
      on('pre-trigger', 'gate::no', () => ({ decision: 'deny', reason: 'no' }));
      return got;
    };
    bindAll();
    const { session_id } = await rig.turn('go');
    await rig.close(true);
    rig = await TurnRig.open({ model, dataDir: rig.dataDir });
    const got = bindAll();
    await rig.turn('go on', { session_id });
    expect(got).toEqual([]);
    expect((await rig.results(session_id)).map(errorOf)).toEqual(['hook_denied', 'hook_denied']);
  });
});

scenarios('annotations', () => {
  it('of every point go into the origin of the entry that it is about', async () => {
    await open(...oneCall());
    rig.function('probe::run');
    for (const point of ['pre-generate', 'post-generate', 'pre-trigger', 'post-trigger']) {
      on(point, `hook::${point}`, () => ({ decision: 'continue', annotations: { [point]: true } }));
    }
    on('pre-trigger', 'hook::second', () => ({ decision: 'continue', annotations: { second: 2 } }));
    const { session_id, turn_id } = await rig.turn('go');
    const entries = await rig.entries(session_id);
    expect(originOf(entries, 'assistant')).toEqual({ turn_id, 'pre-generate': true, 'post-generate': true });
    expect(originOf(entries, 'function_result')).toEqual({ turn_id, 'pre-trigger': true, second: 2, 'post-trigger': true });
  });

  it('of a hook before one that denies or holds are kept', async () => {
    await open(asks(agentCall('c1', 'probe::a'), agentCall('c2', 'probe::b')), says('done'));
    rig.function('probe::a');
    rig.function('probe::b');
    on('pre-trigger', 'hook::1', ({ call }) => ({ decision: 'continue', annotations: { risk: call?.id ?? null } }));
    on('pre-trigger', 'hook::2', ({ call }): HookOutput => (call?.id === 'c1' ? { decision: 'deny', reason: 'no' } : { decision: 'hold' }));
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await rig.release(session_id, turn_id, 'c2');
    await rig.end(turn_id);
    const origins = (await rig.entries(session_id))
      .filter((e) => e.kind === 'message' && e.message.role === 'function_result')
      .map((e) => e.origin);
    expect(origins).toEqual([
      { turn_id, risk: 'c1' },
      { turn_id, risk: 'c2' },
    ]);
  });
});

scenarios('pre-generate', () => {
  it('adds messages for that generation only, and changes no history', async () => {
    await open(...oneCall());
    rig.function('probe::run');
    on('pre-generate', 'hook::remind', ({ step }) => ({
      decision: 'continue',
      mutations: {
        append_messages: [
          { role: 'user', content: [text(`reminder ${step}`)], timestamp: 0 },
          { role: 'user', content: [text('  ')], timestamp: 0 },
        ],
      },
    }));
    const { session_id } = await rig.turn('go');
    const asked = rig.model.requests.map(({ messages }) => messages.map((m) => `${m.role}: ${textOf(m.content)}`));
    expect(asked).toEqual([
      ['user: go', 'user: reminder 0'],
      ['user: go', 'assistant: ', 'function_result: {"ok":true}', 'user: reminder 1'],
    ]);
    expect(rig.lines(session_id)).toEqual(['user: go', 'assistant: [c1]', 'c1 ok: {"ok":true}', 'assistant: done']);
  });

  it('denies in the middle of a turn: it fails without another model call, and says why', async () => {
    await open(asks(agentCall('c1', 'probe::run')));
    rig.function('probe::run');
    on('pre-generate', 'hook::budget', ({ step }) => (step > 0 ? { decision: 'deny', reason: 'the budget is used up' } : undefined));
    const ended = await rig.turn('go');
    expect(ended).toMatchObject({
      status: 'failed',
      reason: 'harness.pre_generate_denied',
      result_error: 'hook::budget: the budget is used up',
    });
    expect(rig.model.requests).toHaveLength(1);
    expect(rig.lines(ended.session_id).at(-1)).toBe('(error)');
  });

  it('may not hold, and pre-turn may not either', async () => {
    await open();
    on('pre-generate', 'hook::odd', () => ({ decision: 'hold' }));
    expect(await rig.turn('go')).toMatchObject({ status: 'failed', reason: 'harness.pre_generate_denied' });
    rig.bind('harness::hook::pre-turn', 'hook::odd');
    expect(await rig.turn('go')).toMatchObject({ status: 'failed', reason: 'harness.pre_turn_denied' });
    expect(rig.model.requests).toEqual([]);
  });
});

scenarios('post-generate', () => {
  it('sees each answer and can change or refuse none of them', async () => {
    await open(...oneCall());
    const got = rig.function('probe::run');
    const seen = on('post-generate', 'hook::watch', (input) => {
      (input.generated as { message: { content: unknown[] } }).message.content = [];
      return { decision: 'deny', reason: 'I do not like it' };
    });
    const { session_id, status } = await rig.turn('go');
    expect([status, got.length, seen.length]).toEqual(['completed', 1, 2]);
    expect(rig.lines(session_id)).toEqual(['user: go', 'assistant: [c1]', 'c1 ok: {"ok":true}', 'assistant: done']);
  });
});

scenarios('post-trigger', () => {
  it('C13 runs once for every result, of two calls of two sessions at once, before anything is stored', async () => {
    rig = await TurnRig.open();
    rig.model.fallback = ({ messages }) =>
      messages.at(-1)?.role === 'user' ? asks(agentCall('c1', 'secret::a'), agentCall('c2', 'secret::b')) : says('done');
    for (const id of ['secret::a', 'secret::b']) rig.function(id, () => `token-${id}`);
    const seen = on('post-trigger', 'hook::mask', async ({ session_id, result }) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      const content = (result?.content ?? []).map((block) =>
        block.type === 'text' ? { ...block, text: block.text.replace(/^token/, 'masked') } : block,
      );
      return { decision: 'continue', mutations: { content, details: { by: session_id } } };
    });
    await Promise.all(['one', 'two'].map((session_id) => rig.turn('go', { session_id })));
    const pairs = seen.map(({ session_id, result }) => `${session_id} ${result?.function_call_id}`);
    expect(pairs.sort()).toEqual(['one c1', 'one c2', 'two c1', 'two c2']);
    for (const session_id of ['one', 'two']) {
      const results = await rig.results(session_id);
      expect(results.map(({ content, details }) => [textOf(content), details])).toEqual([
        ['masked-secret::a', { by: session_id }],
        ['masked-secret::b', { by: session_id }],
      ]);
      expect(JSON.stringify(rig.disk(session_id))).not.toContain('token-');
      expect(JSON.stringify(rig.model.requests)).not.toContain('token-');
    }
    expect(JSON.stringify(rig.events)).not.toContain('token-');
  });

  it('sees results and errors of functions, but no denial and nothing that the loop made up', async () => {
    await open(
      asks(
        agentCall('ok', 'probe::ok'),
        agentCall('throws', 'probe::throws'),
        agentCall('denied', 'harness::send'),
        agentCall('hooked', 'probe::hooked'),
      ),
      { content: [agentCall('cut', 'probe::ok')], stop_reason: 'length' },
      says('done'),
    );
    rig.function('probe::ok');
    rig.function('probe::hooked');
    rig.function('probe::throws', () => Promise.reject(new Error('bad')));
    on('pre-trigger', 'hook::no', () => ({ decision: 'deny', reason: 'no' }), { functions: ['probe::hooked'] });
    const seen = on('post-trigger', 'hook::watch', () => undefined);
    const { session_id } = await rig.turn('go');
    expect((await rig.results(session_id)).map((r) => r.function_call_id)).toEqual(['ok', 'throws', 'denied', 'hooked', 'cut']);
    expect(seen.map(({ result }) => result?.function_call_id)).toEqual(['ok', 'throws']);
  });

  it('can turn a result into an error and an error into a result, and leaves no empty content', async () => {
    await open(asks(agentCall('a', 'probe::a'), agentCall('b', 'probe::b')), says('done'));
    rig.function('probe::a');
    rig.function('probe::b', () => Promise.reject(new Error('bad')));
    on('post-trigger', 'hook::turn', ({ result }) => ({
      decision: 'continue',
      mutations: { is_error: result?.is_error !== true, content: [text(' ')] },
    }));
    const { session_id } = await rig.turn('go');
    expect((await rig.results(session_id)).map(({ is_error, content }) => [is_error, textOf(content)])).toEqual([
      [true, '(no output)'],
      [false, '(no output)'],
    ]);
  });
});

scenarios('pre-trigger', () => {
  it('is not asked about what the policy refuses, and cannot change which function is called', async () => {
    await open(asks(agentCall('c1', 'probe::closed'), agentCall('c2', 'probe::open')), says('done'));
    const closed = rig.function('probe::closed');
    const opened = rig.function('probe::open');
    const seen = on('pre-trigger', 'hook::wide', ({ call }) => ({
      decision: 'continue',
      mutations: { arguments: { function: 'probe::closed', function_id: 'probe::closed', was: call?.function_id ?? null } },
    }));
    const { session_id } = await rig.turn('go', { options: { functions: { allow: ['*'], deny: ['probe::closed'] } } });
    expect(seen.map(({ call }) => call?.id)).toEqual(['c2']);
    expect([closed, opened]).toEqual([[], [{ function: 'probe::closed', function_id: 'probe::closed', was: 'probe::open' }]]);
    expect((await rig.results(session_id)).map(errorOf)).toEqual(['policy_denied', undefined]);
  });

  it('a child that it rewrites gets no more than its parent may', async () => {
    await open(
      asks(agentCall('c1', 'harness::spawn', { task: 'try' })),
      asks(agentCall('k1', 'probe::closed')),
      says('child done'),
      says('done'),
    );
    const closed = rig.function('probe::closed');
    on(
      'pre-trigger',
      'hook::wide',
      ({ call }) => ({
        decision: 'continue',
        mutations: { arguments: { ...(call?.arguments as JsonObject), options: { functions: { allow: ['*'] } } } },
      }),
      { functions: ['harness::spawn'] },
    );
    const { status } = await rig.turn('go', { options: { functions: { allow: ['harness::spawn'] } } });
    expect([status, closed]).toEqual(['completed', []]);
  });
});

scenarios('a hold', () => {
  it('C01 keeps the arguments of all hooks so far over a restart; the release goes on behind the holder', async () => {
    const model = new ScriptedModel(...oneCall({ a: 1 }));
    rig = await TurnRig.open({ model });
    const add = (id: string, decision: 'continue' | 'hold', priority: number): HookInput[] =>
      on('pre-trigger', id, ({ call }) => ({ decision, mutations: { arguments: { ...(call?.arguments as JsonObject), [id]: true } } }), {
        priority,
      });
    const bindAll = (): [HookInput[], HookInput[], HookInput[]] => [
      add('hook::1', 'continue', 1),
      add('hook::2', 'hold', 2),
      add('hook::3', 'continue', 3),
    ];
    bindAll();
    rig.function('probe::run');
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await rig.close(true);
    rig = await TurnRig.open({ model, dataDir: rig.dataDir });
    const [before, holder, after] = bindAll();
    const got = rig.function('probe::run');
    expect(await rig.release(session_id, turn_id, 'c1')).toEqual({ resolved: true, turn_resumed: true });
    await rig.end(turn_id);
    expect(got).toEqual([{ a: 1, 'hook::1': true, 'hook::2': true, 'hook::3': true }]);
    expect([before.length, holder.length, after.length]).toEqual([0, 0, 1]);
  });

  it('by two hooks in turn is released twice, and each sees the arguments so far', async () => {
    await open(...oneCall({ n: 0 }));
    const got = rig.function('probe::run');
    for (const id of ['hook::a', 'hook::b'])
      on('pre-trigger', id, ({ call }) => ({
        decision: 'hold',
        mutations: { arguments: { n: numberOf(call?.arguments) + 1 } },
      }));
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    expect((await rig.release(session_id, turn_id, 'c1')).resolved).toBe(true);
    await rig.until(session_id, 'awaiting_functions');
    expect(got).toEqual([]);
    expect((await rig.release(session_id, turn_id, 'c1')).resolved).toBe(true);
    await rig.end(turn_id);
    expect(got).toEqual([{ n: 2 }]);
  });

  it('that is released into a hook that denies makes no call', async () => {
    await open(...oneCall());
    const got = rig.function('probe::run');
    on('pre-trigger', 'hook::a', () => ({ decision: 'hold' }));
    on('pre-trigger', 'hook::b', () => ({ decision: 'deny', reason: 'too late' }));
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await rig.release(session_id, turn_id, 'c1');
    await rig.end(turn_id);
    expect(got).toEqual([]);
    expect((await rig.results(session_id)).map(errorOf)).toEqual(['hook_denied']);
  });

  it('C09 that is released before it is stored answers false, and the next try has effect', async () => {
    const big = 'x'.repeat(60_000);
    await open(...oneCall({ big }));
    const got = rig.function('probe::run');
    const early: unknown[] = [];
    on('pre-trigger', 'gate::eager', async ({ session_id, turn_id, call }) => {
      early.push(await rig.release(session_id, turn_id, call?.id ?? ''));
      return { decision: 'hold' };
    });
    const { session_id, turn_id } = await rig.send('go');
    let tries = 0;
    while (!(await rig.release(session_id, turn_id, 'c1')).resolved) {
      tries += 1;
      if (tries > 2_000) throw new Error('the hold was never stored');
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(early).toEqual([{ resolved: false, turn_resumed: false }]);
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(got).toEqual([{ big }]);
  });

  it('of one of several calls is released while the others run: each is called once, and the turn goes on', async () => {
    await open(asks(agentCall('c1', 'probe::held'), agentCall('c2', 'probe::slow')), says('done'));
    const heldCalls = rig.function('probe::held');
    let released: unknown;
    const slow = rig.function('probe::slow', async () => {
      const { session_id, turn_id } = sent;
      released = await rig.release(session_id, turn_id, 'c1');
      return 'slow';
    });
    on('pre-trigger', 'gate::hold', () => ({ decision: 'hold' }), { functions: ['probe::held'] });
    const sent = { session_id: 'one', turn_id: '' };
    rig.model.plays();
    const starting = rig.send('go', { session_id: 'one' });
    sent.turn_id = (await starting).turn_id;
    await rig.end(sent.turn_id);
    expect([heldCalls.length, slow.length]).toEqual([1, 1]);
    expect(released).toMatchObject({ resolved: true });
    expect((await rig.results('one')).map((r) => r.function_call_id).sort()).toEqual(['c1', 'c2']);
  });
});

scenarios('harness::function::trigger', () => {
  it('is asked about, changed, denied and held as a call of the turn, and its result is seen before anybody has it', async () => {
    await open(asks(agentCall('c1', 'probe::outer')), says('done'));
    const got = rig.function('probe::run', (payload) => payload);
    const answers: unknown[] = [];
    rig.function('probe::outer', async () => {
      for (const ask of ['change', 'deny', 'hold']) {
        const call = { id: `x_${ask}`, function_id: 'probe::run', arguments: { ask } };
        answers.push(await rig.call('harness::function::trigger', { session_id: 'one', call }));
      }
      return 'ok';
    });
    const verdicts: { [ask: string]: HookOutput } = {
      change: { decision: 'continue', mutations: { arguments: { ask: 'changed' } } },
      deny: { decision: 'deny', reason: 'not today' },
      hold: { decision: 'hold', pending_timeout_ms: 5_000 },
    };
    const only = { functions: ['probe::run'] };
    on('pre-trigger', 'hook::before', ({ call }) => verdicts[(call?.arguments as { ask: string } | undefined)?.ask ?? ''], only);
    on('post-trigger', 'hook::after', () => ({ decision: 'continue', mutations: { content: [text('seen')] } }), only);
    await rig.turn('go', { session_id: 'one' });
    expect(got).toEqual([{ ask: 'changed' }]);
    expect(answers).toMatchObject([
      { function_call_id: 'x_change', content: [text('seen')], is_error: false },
      { function_call_id: 'x_deny', is_error: true, details: { error: 'hook_denied', hook: 'hook::before' } },
      { function_call_id: 'x_hold', function_id: 'probe::run', pending: true },
    ]);
  });
});
