import { afterEach, expect, it, vi } from 'vitest';
import {
  type ContentBlock,
  callsOf,
  type FunctionResultMessage,
  HarnessError,
  type JsonValue,
  type ProviderStreamRequest,
  type SessionMeta,
  type SpawnResponse,
  textOf,
} from '#libs/contracts';
import { EventDelivery } from '../../libs/local/src/turns/delivery.js';
import { SqliteJournal } from '../../libs/local/src/turns/journal.js';
import { gate } from '../support/gate.js';
import { scenarios } from '../support/replay.js';
import { agentCall, type Scripted, ScriptedModel, text } from '../support/scripted-model.js';
import { asks, fails, held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
let excused: RegExp | null = null;
afterEach(async () => {
  vi.restoreAllMocks();
  expect(rig.faults().filter((fault) => excused?.test(fault) !== true)).toEqual([]);
  excused = null;
  await rig.close();
});

const open = async (config: string, ...script: Scripted[]): Promise<void> => {
  rig = await TurnRig.open({ model: new ScriptedModel(...script), config });
};
const spawn = (id: string, task: string, options?: { [name: string]: JsonValue }, rest: { [name: string]: JsonValue } = {}): ContentBlock =>
  agentCall(id, 'harness::spawn', { task, ...(options === undefined ? {} : { options }), ...rest });
const taskOf = ({ messages }: ProviderStreamRequest): string => textOf(messages.find((message) => message.role === 'user')?.content ?? []);
const isFirst = ({ messages }: ProviderStreamRequest): boolean => messages.at(-1)?.role === 'user';
/** A model whose sessions each have their own part, by the first thing that they were told. */
const parts = (byTask: { [task: string]: (request: ProviderStreamRequest) => Scripted }): ScriptedModel => {
  const model = new ScriptedModel();
  model.fallback = (request) => byTask[taskOf(request)]?.(request) ?? says(`no part for ${taskOf(request)}`);
  return model;
};
const errorOf = (result: FunctionResultMessage | undefined): unknown => (result?.details as { error?: unknown } | null)?.error;
const childOf = async (session_id: string, call = 'c1'): Promise<string> =>
  (await rig.status(session_id))?.children.find((child) => child.function_call_id === call)?.session_id ?? '';
const sessions = async (): Promise<SessionMeta[]> => (await rig.call<{ sessions: SessionMeta[] }>('session::list')).sessions;

scenarios('a child of a turn', () => {
  it('is answered to its parent as text and as facts, and both sessions say how they hang together', async () => {
    await open('', asks(spawn('c1', 'add')), says('three'), says('it is three'));
    const events: unknown[] = [];
    for (const type of ['harness::turn-started', 'harness::turn-completed'])
      rig.on(type, `watch::${type}`, (event) => void events.push([type, event]), { parent_session_id: 'root' });
    const { session_id, turn_id } = await rig.turn('go', { session_id: 'root' });
    const [result] = await rig.results(session_id);
    const child = await childOf(session_id);
    const childTurn = (await rig.status(child))?.turn_id;
    expect(result).toMatchObject({
      function_call_id: 'c1',
      function_id: 'harness::spawn',
      is_error: false,
      content: [{ type: 'text', text: 'three' }],
      details: { child_session_id: child, child_turn_id: childTurn, status: 'completed', result: 'three', result_error: null },
    });
    const parent = { session_id, turn_id, function_call_id: 'c1' };
    expect(await rig.call('session::get', { session_id: child })).toMatchObject({
      meta: { metadata: { parent_session_id: session_id, parent_turn_id: turn_id, function_call_id: 'c1', depth: 1 } },
    });
    expect(events).toMatchObject([
      ['harness::turn-started', { session_id: child, depth: 1, parent }],
      [
        'harness::turn-completed',
        { session_id: child, turn_id: childTurn, depth: 1, parent, status: 'completed', result: 'three', terminal: true },
      ],
    ]);
  });

  it('of three at once: the results come in the order of the calls, whoever ends first', async () => {
    const slow = held();
    rig = await TurnRig.open({
      model: parts({
        go: (request) => (isFirst(request) ? asks(spawn('c1', 'slow'), spawn('c2', 'quick'), spawn('c3', 'quick too')) : says('done')),
        slow: () => slow.script,
        quick: () => says('second'),
        'quick too': () => says('third'),
      }),
    });
    const { session_id, turn_id } = await rig.send('go');
    await slow.begun;
    await rig.until(session_id, 'awaiting_functions');
    await rig.until(await childOf(session_id, 'c2'), 'completed');
    await rig.until(await childOf(session_id, 'c3'), 'completed');
    slow.answer(text('first'));
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    const answers = rig.model.requests.at(-1)?.messages.filter((message) => message.role === 'function_result') ?? [];
    expect(answers.map((message) => [message.function_call_id, textOf(message.content)])).toEqual([
      ['c1', 'first'],
      ['c2', 'second'],
      ['c3', 'third'],
    ]);
  });

  it('hands over the value of its output contract', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    await open('', asks(spawn('c1', 'count', { output: { type: 'json', schema } })), says('{"n": 3}'), says('done'));
    const { session_id } = await rig.turn('go');
    expect((await rig.results(session_id))[0]).toMatchObject({
      is_error: false,
      content: [{ text: '{"n":3}' }],
      details: { result: { n: 3 }, result_error: null },
    });
  });

  it('of a call that cannot be understood is refused with the field, and none is made', async () => {
    await open(
      '',
      asks(
        agentCall('c1', 'harness::spawn', { what: 1 }),
        spawn('c2', ' '),
        spawn('c3', 'x', { output: { type: 'json', schema: { type: 'nope' } } }),
        spawn('c4', 'x', { functions: { allow: ['a[b]'] } }),
      ),
      says('done'),
    );
    const { session_id } = await rig.turn('go');
    const results = await rig.results(session_id);
    expect(results.map(errorOf)).toEqual(Array.from({ length: 4 }, () => 'harness/invalid_request'));
    expect(
      results.map((r) =>
        /task is missing|task must not be empty|options\.output\.schema|options\.functions\.allow\[0\]/.test(textOf(r.content)),
      ),
    ).toEqual([true, true, true, true]);
    expect(await sessions()).toHaveLength(1);
  });

  it('in a tree of three levels ends also when only one turn may run at a time', async () => {
    rig = await TurnRig.open({
      config: 'concurrency: 1\nmax_depth: 3\n',
      model: parts({
        root: (r) => (isFirst(r) ? asks(spawn('c1', 'left'), spawn('c2', 'right')) : says('root done')),
        left: (r) => (isFirst(r) ? asks(spawn('c1', 'leaf'), spawn('c2', 'leaf')) : says('left done')),
        right: (r) => (isFirst(r) ? asks(spawn('c1', 'deeper')) : says('right done')),
        deeper: (r) => (isFirst(r) ? asks(spawn('c1', 'leaf')) : says('deeper done')),
        leaf: () => says('leaf done'),
      }),
    });
    expect(await rig.turn('root')).toMatchObject({ status: 'completed', result: 'root done' });
    expect((await sessions()).map((meta) => meta.metadata?.['depth'] ?? 0).sort()).toEqual([0, 1, 1, 2, 2, 2, 3]);
    expect((await sessions()).every((meta) => meta.status === 'done')).toBe(true);
  });

  it('takes at most the generations that its parent has left', async () => {
    rig = await TurnRig.open({
      model: parts({
        go: (r) => (isFirst(r) ? asks(spawn('c1', 'work', { max_turns: 100 })) : says('done')),
        work: (r) => asks(agentCall(`w${r.messages.length}`, 'probe::run')),
      }),
    });
    rig.function('probe::run');
    const { session_id } = await rig.turn('go', { options: { functions: { allow: ['*'] }, max_turns: 4 } });
    expect(await rig.status(await childOf(session_id))).toMatchObject({ max_turns: 3, turn_count: 3 });
  });
});

scenarios('the policy of a child', () => {
  it('I7 is its own and its parent’s: it calls nothing that one of them refuses', async () => {
    const all = ['files::read', 'files::write', 'mail::send', 'harness::spawn', 'harness::send'];
    rig = await TurnRig.open({
      model: parts({
        go: (r) => (isFirst(r) ? asks(spawn('c1', 'work', { functions: { allow: ['*'], deny: ['files::write'] } })) : says('done')),
        work: (r) =>
          isFirst(r)
            ? asks(
                ...all.map((id, n) =>
                  id === 'harness::spawn' ? spawn('w3', 'more', { functions: { allow: ['*'] } }) : agentCall(`w${n}`, id),
                ),
              )
            : says('worked'),
        more: (r) => (isFirst(r) ? asks(...all.slice(0, 3).map((id, n) => agentCall(`m${n}`, id))) : says('more worked')),
      }),
    });
    const called = Object.fromEntries(['files::read', 'files::write', 'mail::send'].map((id) => [id, rig.function(id)]));
    const { session_id } = await rig.turn('go', { options: { functions: { allow: ['files::*', 'harness::*'], deny: [] } } });
    const child = await childOf(session_id);
    const grandchild = await childOf(child, 'w3');
    const codes = async (id: string): Promise<{ [call: string]: unknown }> =>
      Object.fromEntries((await rig.results(id)).map((r) => [r.function_call_id, errorOf(r)]));
    expect(await codes(child)).toEqual({ w0: undefined, w1: 'policy_denied', w2: 'policy_denied', w3: undefined, w4: 'policy_denied' });
    expect(await codes(grandchild)).toEqual({ m0: undefined, m1: 'policy_denied', m2: 'policy_denied' });
    expect([called['files::read']?.length, called['files::write']?.length, called['mail::send']?.length]).toEqual([2, 0, 0]);
  });

  it('is its parent’s when it asks for none, and empty when its wishes and its parent’s do not meet', async () => {
    rig = await TurnRig.open({
      model: parts({
        go: (r) => (isFirst(r) ? asks(spawn('c1', 'same'), spawn('c2', 'other', { functions: { allow: ['mail::*'] } })) : says('done')),
        same: (r) => (isFirst(r) ? asks(agentCall('s1', 'files::read')) : says('ok')),
        other: (r) => (isFirst(r) ? asks(agentCall('o1', 'files::read'), agentCall('o2', 'mail::send')) : says('ok')),
      }),
    });
    const called = [rig.function('files::read'), rig.function('mail::send')];
    await rig.turn('go', { options: { functions: { allow: ['files::*', 'harness::spawn'] } } });
    expect(called.map((calls) => calls.length)).toEqual([1, 0]);
  });

  it('that would take too many globs to write down makes no child', async () => {
    const wild = Array.from({ length: 400 }, (_, n) => `*${n}${'x*'.repeat(60)}y`);
    await open('', asks(spawn('c1', 'work', { functions: { allow: wild } })), says('done'));
    const started = performance.now();
    const { session_id } = await rig.turn('go', {
      options: { functions: { allow: ['harness::spawn', ...wild.map((glob) => `a${glob}`)] } },
    });
    expect(performance.now() - started).toBeLessThan(3_000);
    expect((await rig.results(session_id)).map(errorOf)).toEqual(['harness/invalid_request']);
    expect(await sessions()).toHaveLength(1);
  });
});

scenarios('C34 limits', () => {
  it('of depth and of number are told to the model, and bound the tree of one that spawns for ever', async () => {
    rig = await TurnRig.open({ config: 'max_depth: 2\nmax_children: 2\n' });
    rig.model.fallback = (r) => (isFirst(r) ? asks(...[1, 2, 3].map((n) => spawn(`c${n}`, 'again'))) : says('done'));
    const { session_id } = await rig.turn('again');
    expect(await sessions()).toHaveLength(1 + 2 + 4);
    expect((await rig.results(session_id)).map(errorOf).filter((code) => code !== undefined)).toEqual(['harness/spawn_fanout_exceeded']);
    const deepest = await childOf(await childOf(session_id));
    expect((await rig.results(deepest)).map(errorOf)).toEqual([
      'harness/spawn_depth_exceeded',
      'harness/spawn_depth_exceeded',
      'harness/spawn_depth_exceeded',
    ]);
  });

  it('of number count over all steps of a turn', async () => {
    await open(
      'max_children: 2\n',
      asks(spawn('c1', 'a')),
      says('ok'),
      asks(spawn('c2', 'b')),
      says('ok'),
      asks(spawn('c3', 'c')),
      says('done'),
    );
    const { session_id } = await rig.turn('go');
    expect((await rig.results(session_id)).map(errorOf)).toEqual([undefined, undefined, 'harness/spawn_fanout_exceeded']);
  });

  it('a child has as many children as its parent says, not more', async () => {
    rig = await TurnRig.open({
      model: parts({
        go: (r) => (isFirst(r) ? asks(spawn('c1', 'alone', { max_children: 0 })) : says('done')),
        alone: (r) => (isFirst(r) ? asks(spawn('k1', 'x')) : says('alone it is')),
      }),
    });
    const { session_id } = await rig.turn('go');
    expect((await rig.results(await childOf(session_id))).map(errorOf)).toEqual(['harness/spawn_fanout_exceeded']);
  });
});

scenarios('C35 a child that does not do its task', () => {
  const ways: [string, Scripted[], { [name: string]: JsonValue }, object, RegExp][] = [
    [
      'fails',
      [fails('the key is bad', 'permanent', 'so far')],
      {},
      { status: 'failed', reason: 'llm.permanent' },
      /failed: the key is bad[\s\S]*not its final answer[\s\S]*so far/,
    ],
    [
      'reaches its limit',
      [{ content: [text('half'), agentCall('k1', 'probe::run')] }],
      { max_turns: 1 },
      { status: 'completed', reason: 'max_turns', result: 'half' },
      /did not finish its task[\s\S]*limit of 1[\s\S]*half/,
    ],
    ['says nothing', [{ content: [] }], {}, { status: 'completed', result: '' }, /without an answer/],
    [
      'ends with a call and no text',
      [asks(agentCall('k1', 'probe::run')), { content: [] }],
      {},
      { status: 'completed', result: '' },
      /without an answer/,
    ],
    [
      'misses its contract',
      [says('no'), says('no'), says('still no')],
      { output: { type: 'json' } },
      { status: 'completed', reason: 'invalid_result', result: 'still no' },
      /did not finish its task: the answer is not one JSON value[\s\S]*still no/,
    ],
  ];

  it.each(ways)('because it %s is an error for its parent, with the reason', async (_how, script, options, details, words) => {
    await open('', asks(spawn('c1', 'work', options)), ...script, says('I see'));
    rig.function('probe::run');
    const { session_id, status } = await rig.turn('go');
    expect(status).toBe('completed');
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details });
    expect(textOf(result?.content ?? [])).toMatch(words);
  });

  it('cut off at its length limit is marked', async () => {
    await open('', asks(spawn('c1', 'work')), says('once upon a', 'length'), says('I see'));
    const { session_id } = await rig.turn('go');
    expect(textOf((await rig.results(session_id))[0]?.content ?? [])).toMatch(/^once upon a[\s\S]*cut off at its length limit/);
  });

  it.each([['null'], ['false'], ['0'], ['""'], ['[]']])('is not one whose value is %s', async (value) => {
    await open('', asks(spawn('c1', 'work', { output: { type: 'json' } })), says(value), says('I see'));
    const { session_id } = await rig.turn('go');
    expect((await rig.results(session_id))[0]).toMatchObject({
      is_error: false,
      content: [{ text: value }],
      details: { result: JSON.parse(value) as JsonValue },
    });
  });

  it('in time is stopped, and its parent is told that it timed out', async () => {
    const child = held('working');
    await open('', asks(spawn('c1', 'work', { pending_timeout_ms: 1 })), child.script, says('without it'));
    const { session_id, turn_id } = await rig.send('go');
    await child.begun;
    await rig.until(session_id, 'awaiting_functions');
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await rig.call('harness::sweep-pending')).toEqual({ ok: true, resolved: 1 });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'without it' });
    await child.closed;
    expect(await rig.until(await childOf(session_id), 'cancelled')).toMatchObject({ status: 'cancelled' });
    expect((await rig.results(session_id)).map(errorOf)).toEqual(['pending_timeout']);
  });
});

scenarios('the session of a child', () => {
  it('may be a fork of its parent’s: it knows what was said before', async () => {
    await open('', says('I am here'), asks(spawn('c1', 'what did I say?', undefined, { session_id: 'the fork' })));
    const { session_id } = await rig.turn('hello');
    const entries = await rig.entries(session_id);
    const fork = await rig.call<{ session_id: string }>('session::fork', { session_id, entry_id: entries.at(-1)?.id });
    rig.model.plays(says('hello'), says('you said hello'));
    rig.on('harness::hook::pre-trigger', 'hook::into', ({ call }: { call: { arguments: { [name: string]: JsonValue } } }) => ({
      decision: 'continue',
      mutations: { arguments: { ...call.arguments, session_id: fork.session_id } },
    }));
    expect(await rig.turn('ask it', { session_id })).toMatchObject({ status: 'completed', result: 'you said hello' });
    const inFork = rig.model.requests[2];
    expect(inFork?.messages.map((m) => `${m.role}: ${textOf(m.content)}`)).toEqual([
      'user: hello',
      'assistant: I am here',
      'user: what did I say?',
    ]);
    expect(await childOf(session_id)).toBe(fork.session_id);
    excused = new RegExp(`^${fork.session_id}: assistant entry \\S+ of turn \\S+ has no step$`); // what was copied has ids of its own
  });

  it('of another child before it may be used again', async () => {
    rig = await TurnRig.open();
    let child = '';
    rig.model.plays(asks(spawn('c1', 'remember 7')), says('I will'));
    rig.model.fallback = (r) => (taskOf(r) === 'remember 7' ? says('it was 7') : says('done'));
    const { session_id } = await rig.turn('go');
    child = await childOf(session_id);
    rig.model.plays(asks(spawn('d1', 'which?', undefined, { session_id: child })));
    await rig.turn('ask again', { session_id });
    expect((await rig.results(session_id)).map((r) => [r.is_error, textOf(r.content)])).toEqual([
      [false, 'I will'],
      [false, 'it was 7'],
    ]);
    expect(rig.lines(child)).toEqual(['user: remember 7', 'assistant: I will', 'user: which?', 'assistant: it was 7']);
  });

  it.each(['foreign', 'own', 'busy'])('that is %s is refused, and nothing is written there', async (which) => {
    const other = held();
    rig = await TurnRig.open();
    rig.model.plays(says('private'));
    await rig.turn('secret', { session_id: 'foreign' });
    rig.model.plays(other.script);
    const busy = await rig.send('wait', { session_id: 'busy' });
    await other.begun;
    rig.model.plays(asks(spawn('c1', 'tell me', undefined, { session_id: which })), says('done'));
    const { session_id } = await rig.turn('go', { session_id: 'own' });
    const [result] = await rig.results(session_id);
    expect(result).toMatchObject({ is_error: true, details: { error: 'harness/invalid_request' } });
    expect(textOf(result?.content ?? [])).toContain('session_id');
    expect(rig.lines('foreign')).toEqual(['user: secret', 'assistant: private']);
    other.answer(text('ok'));
    await rig.end(busy.turn_id);
    expect(rig.lines('busy')).toEqual(['user: wait', 'assistant: ok']);
  });
});

scenarios('a spawn that is called directly', () => {
  it('starts a turn of its own at depth 0, with the default policy and what it asks for', async () => {
    await open(
      'default_model: scripted-1\ndefault_functions:\n  allow: ["probe::*"]\n',
      asks(agentCall('c1', 'probe::run'), agentCall('c2', 'other::run')),
      says('done'),
    );
    const called = [rig.function('probe::run'), rig.function('other::run')];
    const { child_session_id, child_turn_id } = await rig.call<SpawnResponse>('harness::spawn', { task: 'go' });
    expect(await rig.end(child_turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(called.map((calls) => calls.length)).toEqual([1, 0]);
    expect(await rig.status(child_session_id)).toMatchObject({ depth: 0, max_turns: 16 });
  });

  it('without any model is refused by the field', async () => {
    await open('');
    await expect(rig.call('harness::spawn', { task: 'go' })).rejects.toThrow('harness/invalid_request: model is missing');
    expect(await sessions()).toEqual([]);
  });

  it('from a function that a model called counts as a child of that turn: its policy, its limits, its end', async () => {
    const grandchild = held();
    rig = await TurnRig.open({
      config: 'max_children: 2\ndefault_max_turns: 1000\n',
      model: parts({
        go: () => asks(agentCall('c1', 'probe::delegate')),
        sub: () => asks(agentCall('s1', 'secret::read')),
        wait: () => grandchild.script,
      }),
    });
    const secret = rig.function('secret::read');
    const answers: unknown[] = [];
    const [begun, stopped] = [gate(), gate()];
    rig.runtime.bus.registerFunction({ id: 'probe::delegate' }, async (_payload, context) => {
      for (const task of ['wait', 'sub', 'one too many']) {
        const payload = { task, options: { functions: { allow: ['*'] } } };
        answers.push(
          await context.trigger<SpawnResponse>({ function_id: 'harness::spawn', payload }).catch((error: unknown) => String(error)),
        );
      }
      begun.open();
      await stopped.promise;
      answers.push(
        await context.trigger({ function_id: 'harness::spawn', payload: { task: 'too late' } }).catch((error: unknown) => String(error)),
      );
      return 'delegated';
    });
    const { session_id, turn_id } = await rig.send('go', { options: { functions: { allow: ['probe::*'] } } });
    await begun.promise;
    await grandchild.begun;
    expect(answers[2]).toContain('harness/spawn_fanout_exceeded');
    const report = await rig.status(session_id);
    expect(report?.children.map((child) => child.session_id)).toEqual(
      answers.slice(0, 2).map((answer) => (answer as SpawnResponse).child_session_id),
    );
    const [waiting, sub] = report?.children ?? [];
    expect(await rig.status(waiting?.session_id ?? '')).toMatchObject({ depth: 1 });
    await vi.waitFor(async () => expect((await rig.results(sub?.session_id ?? '')).map(errorOf)).toContain('policy_denied'));
    await rig.stop(session_id);
    await rig.end(turn_id);
    await grandchild.closed;
    stopped.open();
    await vi.waitFor(() => expect(answers).toHaveLength(4));
    expect(answers[3]).toContain('has ended');
    expect(secret).toEqual([]);
    for (const child of report?.children ?? []) expect((await rig.until(child.session_id, 'cancelled')).status).toBe('cancelled');
    expect(await sessions()).toHaveLength(3);
  });
});

scenarios('a child over crashes and repeats', () => {
  it('C03 of a held spawn that is released five times at once is one', async () => {
    await open('', asks(spawn('c1', 'work')), says('worked'), says('done'));
    rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }));
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => rig.release(session_id, turn_id, 'c1')));
    expect(answers.filter((answer) => answer.resolved)).toHaveLength(1);
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(await rig.release(session_id, turn_id, 'c1')).toEqual({ resolved: false, turn_resumed: false });
    expect(await sessions()).toHaveLength(2);
    expect((await rig.status(session_id))?.children).toHaveLength(1);
  });

  it('C03 a spawn that waits for its child cannot be executed, only answered, and the child’s own end then changes nothing', async () => {
    const child = held();
    await open('', asks(spawn('c1', 'work')), child.script, says('done'));
    const { session_id, turn_id } = await rig.send('go');
    await child.begun;
    await rig.until(session_id, 'awaiting_functions');
    expect(await rig.release(session_id, turn_id, 'c1')).toEqual({ resolved: false, turn_resumed: false });
    expect(await rig.deliver(session_id, turn_id, 'c1', 'by hand')).toEqual({ resolved: true, turn_resumed: true });
    await rig.end(turn_id);
    child.answer(text('late'));
    await rig.until(await childOf(session_id), 'completed');
    expect((await rig.results(session_id)).map((r) => textOf(r.content))).toEqual(['by hand']);
  });

  it('that ends in another process answers its parent there', async () => {
    const model = parts({
      go: (r) => (isFirst(r) ? asks(spawn('c1', 'work')) : says('done')),
      work: (r) => (isFirst(r) ? asks(agentCall('k1', 'probe::run')) : says('worked')),
    });
    rig = await TurnRig.open({ model });
    rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }), { functions: ['probe::*'] });
    rig.function('probe::run');
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    const child = await childOf(session_id);
    const { turn_id: childTurn } = await rig.until(child, 'awaiting_functions');
    await rig.close(true);
    rig = await TurnRig.open({ model, dataDir: rig.dataDir, role: 'worker' });
    const called = rig.function('probe::run');
    await rig.release(child, childTurn ?? '', 'k1');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(called).toHaveLength(1);
    expect((await rig.results(session_id)).map((r) => textOf(r.content))).toEqual(['worked']);
  });

  it('whose end was stored and not told before the process died answers its parent at the next start', async () => {
    const model = parts({ go: (r) => (isFirst(r) ? asks(spawn('c1', 'work')) : says('done')), work: () => says('worked') });
    rig = await TurnRig.open({ model });
    vi.spyOn(EventDelivery.prototype, 'deliver').mockImplementation(() => undefined);
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await rig.until(await childOf(session_id), 'completed');
    await rig.close(true);
    vi.restoreAllMocks();
    rig = await TurnRig.open({ model, dataDir: rig.dataDir, role: 'worker' });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect((await rig.results(session_id)).map((r) => [r.is_error, textOf(r.content)])).toEqual([[false, 'worked']]);
    expect(callsOf(rig.disk(session_id).entries[1]?.message?.content ?? [])).toHaveLength(1);
  });

  it('whose session has gone on before its end was told answers its parent all the same, with that end', async () => {
    const model = parts({ go: (r) => (isFirst(r) ? asks(spawn('c1', 'work')) : says('done')) });
    const work = model.fallback;
    model.fallback = (r) => (taskOf(r) === 'work' ? says(r.messages.length === 1 ? 'worked' : 'something else') : (work?.(r) ?? says('')));
    rig = await TurnRig.open({ model });
    vi.spyOn(EventDelivery.prototype, 'deliver').mockImplementation(() => undefined);
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    const child = await childOf(session_id);
    await rig.until(child, 'completed');
    expect(await rig.turn('and now?', { session_id: child })).toMatchObject({ result: 'something else' });
    await rig.close(true);
    vi.restoreAllMocks();
    rig = await TurnRig.open({ model, dataDir: rig.dataDir, role: 'worker' });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect((await rig.results(session_id)).map((r) => [r.is_error, textOf(r.content)])).toEqual([[false, 'worked']]);
  });

  it('is stopped by the next stop of its parent when the first one ended only that', async () => {
    const work = held('on it');
    rig = await TurnRig.open({ model: parts({ go: () => asks(spawn('c1', 'work')), work: () => work.script }) });
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await work.begun;
    const child = await childOf(session_id);
    const { turn_id: childTurn } = await rig.until(child, 'running');
    const { commit } = SqliteJournal.prototype;
    vi.spyOn(SqliteJournal.prototype, 'commit').mockImplementation(function (this: SqliteJournal, writes, point) {
      if (point === 'stop-requested') return Promise.reject(new HarnessError('harness/storage', 'the process ended here'));
      return commit.call(this, writes, point);
    });
    await expect(rig.stop(session_id)).rejects.toThrow('the process ended here');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'cancelled' });
    vi.restoreAllMocks();
    expect(await rig.status(child)).toMatchObject({ status: 'running' });
    expect(await rig.stop(session_id)).toEqual({ stopping: true });
    expect(await rig.end(childTurn ?? '')).toMatchObject({ status: 'cancelled' });
    expect(await rig.stop(session_id)).toEqual({ stopping: false });
  });
});
