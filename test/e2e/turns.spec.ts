import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type ContentBlock,
  type ErrorKind,
  type FunctionPolicyInput,
  type FunctionTriggerResponse,
  type StreamFrame,
  textOf,
} from '#libs/contracts';
import { readDisk } from '../support/disk.js';
import { gate } from '../support/gate.js';
import { lines, resultOf } from '../support/lines.js';
import { forceReplay, MODES } from '../support/replay.js';
import { Rig } from '../support/rig.js';
import { agentCall, type Scripted, text } from '../support/scripted-model.js';

const nativeCall = (id: string, function_id: string, args: unknown): ContentBlock => ({
  type: 'function_call',
  id,
  function_id,
  arguments: args as never,
});
const allow = (...globs: string[]): { options: { functions: FunctionPolicyInput } } => ({ options: { functions: { allow: globs } } });
const says = (value: string): Scripted => ({ content: [text(value)] });
const asks = (...calls: ContentBlock[]): Scripted => ({ content: calls });
const fails = (kind: ErrorKind, content: ContentBlock[] = []): Scripted => ({
  frames: [
    ...content.flatMap((block): StreamFrame[] =>
      block.type === 'text' ? [{ type: 'text_start' }, { type: 'text_delta', delta: block.text }] : [],
    ),
    {
      type: 'error',
      error: {
        role: 'assistant',
        content,
        model: 'scripted-1',
        provider: 'scripted',
        stop_reason: 'error',
        error_kind: kind,
        error_message: `it was ${kind}`,
        timestamp: 1,
      },
    },
  ],
});

describe.each(MODES)('turns $how', ({ replay }) => {
  let rig: Rig;
  let undo: () => void = () => undefined;
  let session = '';
  let count = 0;
  const invoked: string[] = [];

  beforeAll(async () => {
    if (replay) undo = forceReplay();
    rig = await Rig.open();
    const register = (id: string, handler: (payload: never) => unknown): void => {
      rig.runtime.bus.registerFunction({ id, request_format: { type: 'object' } }, (payload) => {
        invoked.push(id);
        return handler(payload as never);
      });
    };
    register('math::add', ({ a, b }: { a: number; b: number }) => ({ sum: a + b }));
    register('echo::it', (payload) => payload);
    register('bad::throws', () => Promise.reject(new Error('math/broken: no numbers today')));
    register('bad::hangs', () => new Promise(() => undefined));
    register('secret::read', () => 'a secret');
  });
  afterEach(() => {
    invoked.length = 0;
    rig.model.assertDone();
  });
  afterAll(async () => {
    expect(rig.faults()).toEqual([]);
    await rig.close();
    undo();
  });
  /** A session of its own for each test. */
  const fresh = (): string => {
    count += 1;
    session = `session-${count}`;
    return session;
  };

  describe('text and calls', () => {
    it('answers a message', async () => {
      rig.model.plays(says('Hello there.'));
      const { entries, status, turn } = await rig.turn(fresh(), 'hello');
      expect(lines(entries)).toEqual(['user: hello', 'assistant: Hello there.']);
      expect([status, turn?.record.status, turn?.record.result]).toEqual(['done', 'completed', 'Hello there.']);
    });

    it('a tool turn calls the function once, costs four commits and answers', async () => {
      rig.model.plays(asks(text('Adding.'), agentCall('c1', 'math::add', { a: 1, b: 2 })), says('It is 3.'));
      const before = rig.runtime.commits;
      const { entries, turn } = await rig.turn(fresh(), 'add', allow('math::*'));
      expect(rig.runtime.commits - before).toBeLessThanOrEqual(4);
      expect(lines(entries)).toEqual(['user: add', 'assistant: Adding. [c1]', 'c1 ok: {"sum":3}', 'assistant: It is 3.']);
      expect(invoked).toEqual(['math::add']);
      expect([turn?.record.turn_count, turn?.record.call_count, turn?.record.step]).toEqual([2, 1, 1]);
    });

    it('runs several calls of a message in order, with their results in call order', async () => {
      rig.model.plays(
        asks(agentCall('m1', 'echo::it', { n: 1 }), agentCall('m2', 'math::add', { a: 1, b: 1 }), agentCall('m3', 'echo::it', { n: 3 })),
        says('Done.'),
      );
      const { entries } = await rig.turn(fresh(), 'go', allow('echo::*', 'math::*'));
      expect(lines(entries).slice(1)).toEqual([
        'assistant: [m1] [m2] [m3]',
        'm1 ok: {"n":1}',
        'm2 ok: {"sum":2}',
        'm3 ok: {"n":3}',
        'assistant: Done.',
      ]);
      expect(invoked).toEqual(['echo::it', 'math::add', 'echo::it']);
    });

    it('without a policy a call is refused, nothing is offered, and the turn completes', async () => {
      rig.model.plays(asks(agentCall('n1', 'math::add')), says('I may not.'));
      const from = rig.model.requests.length;
      const { entries, turn } = await rig.turn(fresh(), 'add');
      expect(rig.requests(from)[0]?.tools ?? []).toEqual([]);
      expect(lines(entries)[2]).toMatch(/^n1 failed\(policy_denied\)/);
      expect([turn?.record.status, invoked]).toEqual(['completed', []]);
    });

    it('C26 calls that are denied, never open or unknown give results that tell them apart', async () => {
      const targets = {
        p1: 'secret::read',
        p2: 'harness::send',
        p3: 'session::append',
        p4: 'router::chat',
        p5: 'provider::scripted::stream',
        p6: 'nope::x',
        p7: 'configuration::set',
      };
      rig.model.plays(asks(...Object.entries(targets).map(([id, target]) => agentCall(id, target))), says('Fine.'));
      const done = await rig.turn(fresh(), 'try', { options: { functions: { allow: ['*'], deny: ['secret::*'] } } });
      const codes = Object.keys(targets).map((id) => (resultOf(done, id).details as { error: string }).error);
      expect(codes).toEqual([
        'policy_denied',
        'policy_denied',
        'policy_denied',
        'policy_denied',
        'policy_denied',
        'function_not_found',
        'policy_denied',
      ]);
      expect([invoked, done.turn?.record.status]).toEqual([[], 'completed']);
    });

    it('native exposure offers each allowed function and calls it by its id', async () => {
      rig.model.plays(asks(nativeCall('v1', 'math::add', { a: 2, b: 2 })), says('Four.'));
      const from = rig.model.requests.length;
      const { entries } = await rig.turn(fresh(), 'add', {
        options: { functions: { allow: ['math::*', 'secret::*'], deny: ['secret::*'], expose: 'native' } },
      });
      expect(rig.requests(from)[0]?.tools?.map((tool) => tool.name)).toEqual(['math::add']);
      expect(lines(entries)[2]).toBe('v1 ok: {"sum":4}');
    });

    it('C25 arguments that come as text or not at all reach the function as an object', async () => {
      rig.model.plays(
        asks(
          nativeCall('x1', 'agent_trigger', JSON.stringify({ function: 'echo::it', description: 'd', payload: { a: 1 } })),
          agentCall('x2', 'echo::it', '{"a":2}'),
          nativeCall('x3', 'echo::it', ''),
          nativeCall('x4', 'echo::it', null),
          nativeCall('x5', 'echo::it', '{"a":'),
          nativeCall('x6', 'agent_trigger', { payload: {} }),
        ),
        says('ok'),
      );
      const { entries } = await rig.turn(fresh(), 'go', allow('echo::*'));
      expect(lines(entries).slice(2, 6)).toEqual(['x1 ok: {"a":1}', 'x2 ok: {"a":2}', 'x3 ok: {}', 'x4 ok: {}']);
      expect(lines(entries)[6]).toMatch(/^x5 failed\(invalid_arguments\)/);
      expect(lines(entries)[7]).toMatch(/^x6 failed\(agent_trigger_no_target\)/);
    });
  });

  describe('functions that misbehave', () => {
    it('C14 one that throws is called once, and its error is a result', async () => {
      rig.model.plays(asks(agentCall('t1', 'bad::throws')), says('It broke.'));
      const { entries } = await rig.turn(fresh(), 'go', allow('bad::*'));
      expect(lines(entries)[2]).toBe('t1 failed: math/broken: no numbers today');
      expect(invoked).toEqual(['bad::throws']);
    });

    it('C28 one that gives no result in time is an error that says that it may still run', async () => {
      rig.model.plays(asks(agentCall('t2', 'bad::hangs')), says('Too slow.'));
      const done = await rig.turn(fresh(), 'go', allow('bad::*'));
      expect(resultOf(done, 't2')).toMatchObject({ is_error: true, details: { error: 'timeout' } });
      expect(textOf(resultOf(done, 't2').content)).toContain('may still run');
    });

    it('C27 whatever a function returns or throws becomes one readable result', async () => {
      const circle: { [key: string]: unknown } = { name: 'circle' };
      circle['self'] = circle;
      const returned: unknown[] = [
        undefined,
        null,
        '',
        '  ',
        12n,
        circle,
        new Date(0),
        Number.NaN,
        Buffer.from('hi'),
        () => 1,
        Symbol('s'),
        [],
        new Map([['a', 1]]),
        '\uD800half',
        { content: [{ type: 'text', text: '' }] },
      ];
      const thrown: unknown[] = ['a text', null, undefined, 7, circle, { message: 'an object' }, new Error('')];
      const bus = rig.runtime.bus;
      const registrations = [
        ...returned.map((value, n) => bus.registerFunction({ id: `odd::r${n}` }, () => value)),
        ...thrown.map((value, n) =>
          bus.registerFunction({ id: `odd::t${n}` }, () => {
            throw value;
          }),
        ),
      ];
      const ids = registrations.map(({ id }) => id);
      rig.model.plays(asks(...ids.map((id) => agentCall(id.replace('::', '_'), id))), says('All seen.'));
      const done = await rig.turn(fresh(), 'go', allow('odd::*'));
      for (const id of ids) {
        const { content, is_error } = resultOf(done, id.replace('::', '_'));
        expect([id, content.length, textOf(content).trim() !== '', textOf(content).isWellFormed(), is_error]).toEqual([
          id,
          1,
          true,
          true,
          id.startsWith('odd::t'),
        ]);
      }
      for (const registration of registrations) registration.unregister();
    });
  });

  describe('ends and limits', () => {
    it('C29 max_turns ends the turn after so many generations, with a notice and a result error', async () => {
      rig.model.plays(...[0, 1, 2, 3].map((n) => asks(agentCall(`d${n}`, 'secret::read'))));
      const from = rig.model.requests.length;
      const { entries, turn, status } = await rig.turn(fresh(), 'loop', { options: { functions: { allow: ['math::*'] }, max_turns: 4 } });
      expect(rig.requests(from)).toHaveLength(4);
      expect(lines(entries).at(-1)).toBe('(notice)');
      expect(turn?.record).toMatchObject({ status: 'completed', reason: 'max_turns' });
      expect(turn?.record.result_error).toContain('4');
      expect(status).toBe('done');
    });

    it('a call that the length limit cut off is not run', async () => {
      rig.model.plays({ content: [text('I will'), nativeCall('l1', 'echo::it', '{"a":')], stop_reason: 'length' }, says('Shorter now.'));
      const { entries } = await rig.turn(fresh(), 'go', { options: { functions: { allow: ['echo::*'], expose: 'native' } } });
      expect(lines(entries)[2]).toMatch(/^l1 failed\(arguments_truncated\)/);
      expect(invoked).toEqual([]);
    });

    it('C19 an answer that the length limit cut off completes the turn and says so', async () => {
      rig.model.plays({ content: [text('half a sen')], stop_reason: 'length' });
      const { turn } = await rig.turn(fresh(), 'go');
      expect(turn?.record).toMatchObject({ status: 'completed', reason: 'length', result: 'half a sen' });
    });

    it('call ids that repeat, within a message and across turns, are made distinct; an exact repeat runs once', async () => {
      rig.model.plays(
        asks(
          agentCall('a', 'echo::it', { n: 1 }),
          agentCall('a', 'echo::it', { n: 1 }),
          agentCall('a', 'echo::it', { n: 2 }),
          agentCall('', 'echo::it', { n: 3 }),
        ),
        says('one'),
      );
      await rig.turn(fresh(), 'first', allow('echo::*'));
      expect(invoked).toHaveLength(3);
      rig.model.plays(asks(agentCall('a', 'echo::it', { n: 4 }), agentCall('error', 'echo::it', { n: 5 })), says('two'));
      const { entries } = await rig.turn(session, 'second', allow('echo::*'));
      expect(invoked).toHaveLength(5);
      expect(
        lines(entries)
          .filter((line) => line.includes(' ok: '))
          .map((line) => line.split(' ok: ')[1]),
      ).toEqual([1, 2, 3, 4, 5].map((n) => `{"n":${n}}`));
    });

    it.each(['auth_expired', 'context_overflow', 'permanent', 'transient', 'rate_limited'] as const)(
      'a %s error of the model fails the turn, and the next send works',
      async (kind) => {
        rig.model.fallback = () => fails(kind);
        const failed = await rig.turn(fresh(), 'hello');
        rig.model.fallback = undefined;
        expect(failed.turn?.record).toMatchObject({ status: 'failed' });
        expect(failed.turn?.record.result_error).toContain(`it was ${kind}`);
        expect(failed.status).toBe('error');
        expect(failed.entries.at(-1)?.custom).toMatchObject({ type: 'error', data: { kind } });
        rig.model.plays(says('Back again.'));
        const { entries, status } = await rig.turn(session, 'and now?');
        expect([lines(entries).at(-1), status]).toEqual(['assistant: Back again.', 'done']);
      },
    );

    it('a stream that breaks after some text is done again into the same entry', async () => {
      rig.model.plays(fails('transient', [text('half an ans')]), says('A whole answer.'));
      const { entries, turn } = await rig.turn(fresh(), 'hello');
      expect(lines(entries)).toEqual(['user: hello', 'assistant: A whole answer.']);
      expect(turn?.record).toMatchObject({ status: 'completed', turn_count: 1 });
    });

    it.each([[''], ['   \n']])('C17 an answer of %j does not harm the next request', async (nothing) => {
      rig.model.plays({ content: nothing === '' ? [] : [text(nothing)] });
      expect((await rig.turn(fresh(), 'hello')).turn?.record.status).toBe('completed');
      rig.model.plays(says('Something.'));
      const { entries } = await rig.turn(session, 'again');
      expect(lines(entries).at(-1)).toBe('assistant: Something.');
    });

    it('C15 a stored call without a result is answered in every later request', async () => {
      await rig.call('session::ensure', { session_id: fresh() });
      await rig.call('session::append', { session_id: session, message: { role: 'user', content: [text('old')], timestamp: 1 } });
      const message = {
        role: 'assistant',
        content: [agentCall('old1', 'echo::it')],
        model: 'm',
        provider: 'p',
        stop_reason: 'function_call',
        timestamp: 2,
      };
      const { entry_id } = await rig.call<{ entry_id: string }>('session::append', { session_id: session, message });
      rig.model.plays(says('Repaired.'));
      const from = rig.model.requests.length;
      await rig.turn(session, 'go on');
      expect(rig.requests(from)[0]?.messages.map((m) => m.role)).toEqual(['user', 'assistant', 'function_result', 'user']);
      await rig.call('session::delete', { session_id: session });
      expect(entry_id).toMatch(/^e_/);
    });
  });

  describe('steering', () => {
    it('a message that comes while a call runs is answered by the same turn', async () => {
      const steered = gate<string>();
      rig.runtime.bus.registerFunction({ id: `steer::${replay}` }, async () => {
        const { merged, turn_id } = await rig.send(session, 'and also this');
        steered.open(`${merged} ${turn_id}`);
        return 'ok';
      });
      rig.model.plays(asks(agentCall('s1', `steer::${replay}`)), says('Both done.'));
      const { entries, turn } = await rig.turn(fresh(), 'do this', allow('steer::*'));
      expect(await steered.promise).toBe(`true ${turn?.record.turn_id}`);
      expect(lines(entries)).toEqual(['user: do this', 'assistant: [s1]', 's1 ok: ok', 'user: and also this', 'assistant: Both done.']);
    });

    it('a message that comes while the last answer streams makes another step', async () => {
      const [streaming, go] = [gate(), gate()];
      rig.model.plays(async (request, writer) => {
        await writer.send({ type: 'text_start' } satisfies StreamFrame);
        streaming.open();
        await go.promise;
        const message = {
          role: 'assistant' as const,
          content: [text('First.')],
          model: request.model,
          provider: 'scripted',
          stop_reason: 'end' as const,
          timestamp: 1,
        };
        await writer.send({ type: 'done', message } satisfies StreamFrame);
      }, says('Second.'));
      const { turn_id } = await rig.send(fresh(), 'one');
      await streaming.promise;
      expect(await rig.send(session, 'two')).toMatchObject({ turn_id, merged: true });
      go.open();
      await rig.over(turn_id);
      expect(lines(rig.disk(session).entries)).toEqual(['user: one', 'assistant: First.', 'user: two', 'assistant: Second.']);
    });

    it('a message that waits when the turn reaches its limit is answered by a turn of its own', async () => {
      rig.runtime.bus.registerFunction({ id: `late::${replay}` }, async () => {
        await rig.send(session, 'too late for this turn');
        return 'ok';
      });
      rig.model.plays(asks(agentCall('w1', `late::${replay}`)), says('Now this.'));
      const first = await rig.send(fresh(), 'go', { options: { functions: { allow: ['late::*'] }, max_turns: 1 } });
      await rig.over(first.turn_id);
      await rig.over(await rig.nextTurn(session, first.turn_id));
      const texts = lines(rig.disk(session).entries);
      expect(texts.filter((line) => line === 'user: too late for this turn')).toHaveLength(1);
      expect(texts.at(-1)).toBe('assistant: Now this.');
    });

    it('C19 a custom-role message over a finished session completes without a model call', async () => {
      rig.model.plays(says('Hello.'));
      await rig.turn(fresh(), 'hello');
      const from = rig.model.requests.length;
      const { entries, turn } = await rig.turn(session, { role: 'custom', custom_type: 'wake', content: [text('tick')], timestamp: 1 });
      expect(rig.requests(from)).toEqual([]);
      expect([turn?.record.status, lines(entries).at(-1)]).toEqual(['completed', 'custom: tick']);
    });

    it('C38 25 sends while turns end and start are all there, once, in order', async () => {
      rig.model.fallback = (request) => says(`answer to ${request.messages.length}`);
      const turns = new Set<string>();
      const sessionId = fresh();
      for (let n = 0; n < 25; n += 1) {
        turns.add((await rig.send(sessionId, `message ${n}`)).turn_id);
        await new Promise((resolve) => setTimeout(resolve, (n * 7) % 5));
      }
      for (const turn of turns) await rig.over(turn);
      rig.model.fallback = undefined;
      const { entries } = rig.disk(sessionId);
      expect(lines(entries).filter((line) => line.startsWith('user: '))).toEqual(
        Array.from({ length: 25 }, (_, n) => `user: message ${n}`),
      );
      expect(lines(entries).at(-1)).toMatch(/^assistant: /);
    });

    it('I10 one idempotency key, ten times at once, is one message and one turn; keys that look alike are two', async () => {
      rig.model.fallback = () => says('ok');
      const sessionId = fresh();
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => rig.send(sessionId, 'once', { idempotency_key: `${sessionId}/1` })),
      );
      expect(new Set(answers.map((answer) => answer.turn_id)).size).toBe(1);
      expect(answers.filter((answer) => answer.deduplicated === true)).toHaveLength(9);
      await rig.over(answers[0]?.turn_id ?? '');
      await rig.turn(sessionId, 'twice', { idempotency_key: `${sessionId}_1` });
      await expect(rig.send(sessionId, 'another', { idempotency_key: `${sessionId}_1` })).rejects.toThrow('harness/idempotency_conflict');
      rig.model.fallback = undefined;
      expect(lines(rig.disk(sessionId).entries)).toEqual(['user: once', 'assistant: ok', 'user: twice', 'assistant: ok']);
    });
  });

  describe('what others see', () => {
    it('harness::status tells of the turn while it runs and after', async () => {
      const [running, go] = [gate(), gate()];
      rig.runtime.bus.registerFunction({ id: `wait::${replay}` }, async () => {
        running.open();
        await go.promise;
        return 'ok';
      });
      expect(await rig.status(fresh())).toBeNull();
      rig.model.plays(asks(agentCall('q1', `wait::${replay}`)), says('Done.'));
      const { turn_id } = await rig.send(session, 'go', allow('wait::*'));
      await running.promise;
      expect(await rig.status(session)).toMatchObject({
        turn_id,
        status: 'running',
        step: 0,
        turn_count: 1,
        depth: 0,
        pending_function_calls: [],
        children: [],
      });
      expect(rig.disk(session).status).toBe('working');
      go.open();
      await rig.over(turn_id);
      expect(await rig.status(session)).toMatchObject({ status: 'completed', step: 1, turn_count: 2, result: 'Done.', result_error: null });
    });

    it('harness::function::trigger runs a call under the policy of the live turn only', async () => {
      const trigger = (target: string): Promise<FunctionTriggerResponse> =>
        rig.call('harness::function::trigger', { session_id: session, call: { id: 'x', function_id: target, arguments: { a: 1, b: 5 } } });
      const seen = gate<FunctionTriggerResponse[]>();
      rig.runtime.bus.registerFunction({ id: `inside::${replay}` }, async () => {
        seen.open([await trigger('math::add'), await trigger('secret::read')]);
        return 'ok';
      });
      rig.model.plays(asks(agentCall('f1', `inside::${replay}`)), says('Done.'));
      await rig.turn(fresh(), 'go', allow('math::*', 'inside::*'));
      const [allowed, refused] = await seen.promise;
      expect(allowed).toMatchObject({ function_id: 'math::add', is_error: false, content: [text('{"sum":6}')] });
      expect(refused).toMatchObject({ is_error: true, details: { error: 'policy_denied' } });
      expect(await trigger('math::add')).toMatchObject({ is_error: true, details: { error: 'policy_denied' } });
      expect(invoked).toEqual(['math::add']);
    });

    it('turn events and status changes reach the functions bound to them, by their filters', async () => {
      const { bus } = rig.runtime;
      const told: string[] = [];
      const sessionId = fresh();
      const bindings = [
        ['harness::turn-started', { session_id: sessionId }],
        ['harness::turn-completed', { session_id: sessionId }],
        ['harness::turn-completed', { session_id: 'another' }],
        ['harness::turn-completed', { parent_session_id: sessionId }],
        ['session::status-changed', { session_id: sessionId }],
      ] as const;
      const ended = gate();
      const registrations = bindings.flatMap(([type, config], n) => [
        bus.registerFunction({ id: `told::${replay}::${n}` }, (payload) => {
          const { status, session_id } = payload as { status?: string; session_id: string };
          told.push(`${n} ${type} ${session_id === sessionId} ${status}`);
          if (type === 'harness::turn-completed') ended.open();
        }),
        bus.registerTrigger({ type, function_id: `told::${replay}::${n}`, config }),
      ]);
      rig.model.plays(says('Hello.'));
      await rig.turn(sessionId, 'hello');
      await ended.promise;
      expect(told.sort()).toEqual([
        '0 harness::turn-started true undefined',
        '1 harness::turn-completed true completed',
        '4 session::status-changed true done',
        '4 session::status-changed true working',
      ]);
      for (const registration of registrations) registration.unregister();
    });

    it('a slow stream is stored while it comes', async () => {
      const [halfway, go] = [gate(), gate()];
      rig.model.plays(async (request, writer) => {
        await writer.send({ type: 'text_start' } satisfies StreamFrame);
        for (const delta of ['One ', 'two ', 'three ']) {
          await writer.send({ type: 'text_delta', delta } satisfies StreamFrame);
          await new Promise((resolve) => setTimeout(resolve, 15));
        }
        halfway.open();
        await go.promise;
        const message = {
          role: 'assistant' as const,
          content: [text('One two three four.')],
          model: request.model,
          provider: 'scripted',
          stop_reason: 'end' as const,
          timestamp: 1,
        };
        await writer.send({ type: 'done', message } satisfies StreamFrame);
      });
      const { turn_id } = await rig.send(fresh(), 'count');
      await halfway.promise;
      expect(lines(rig.disk(session).entries)[1]).toMatch(/^assistant: One two/);
      go.open();
      await rig.over(turn_id);
      expect(lines(rig.disk(session).entries)).toEqual(['user: count', 'assistant: One two three four.']);
      expect(readDisk(rig.dataDir).integrity).toBe('ok');
    });

    it('bad sends are refused by name and leave nothing', async () => {
      const sessionId = fresh();
      const wrong = async (payload: object): Promise<unknown> =>
        rig
          .call('harness::send', { session_id: sessionId, message: 'x', model: 'scripted-1', ...payload })
          .catch((error: unknown) => String(error));
      expect(await wrong({ message: '  ' })).toContain('harness/invalid_request: message must not be empty');
      expect(await wrong({ model: 3 })).toContain('harness/invalid_request: model must be string');
      expect(
        await wrong({ message: { role: 'assistant', content: [], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 1 } }),
      ).toContain('harness/invalid_message_role');
      expect(await wrong({ options: { functions: { allow: ['a**'] } } })).toContain('options.functions.allow[0]');
      expect(readDisk(rig.dataDir).sessions.some((stored) => stored.session_id === sessionId)).toBe(false);
    });
  });
});
