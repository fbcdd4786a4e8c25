import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, expect, it, vi } from 'vitest';
import {
  type CustomMessage,
  entryIds,
  type HookInput,
  type JsonObject,
  type ProviderStreamRequest,
  type SessionMeta,
  textOf,
} from '#libs/contracts';
import type { ParkedMessage } from '#libs/turn';
import { userTexts } from '../support/invariants.js';
import { scenarios } from '../support/replay.js';
import { agentCall, ScriptedModel, text } from '../support/scripted-model.js';
import { asks, fails, held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(async () => {
  vi.useRealTimers();
  expect(rig.faults()).toEqual([]);
  await rig.close();
});

const open = async (...script: ConstructorParameters<typeof ScriptedModel>): Promise<void> => {
  rig = await TurnRig.open({ model: new ScriptedModel(...script) });
};
const note = (value: string): CustomMessage => ({ role: 'custom', custom_type: 'note', content: [text(value)], timestamp: 1 });
const asked = (request: ProviderStreamRequest | undefined): string[] =>
  (request?.messages ?? []).map((m) => `${m.role}: ${textOf(m.content)}`);
const holdAll = (): void => void rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }));

scenarios('a send into a turn that runs', () => {
  it('C38 is taken up by the same turn, many of them in the order in which they were accepted', async () => {
    const first = held();
    await open(first.script, says('answered all'));
    const { session_id, turn_id } = await rig.send('m0');
    await first.begun;
    for (let n = 1; n <= 5; n += 1)
      expect(await rig.send(`m${n}`, { session_id })).toEqual({ accepted: true, session_id, turn_id, merged: true });
    first.answer(text('answered m0'));
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'answered all', steps: 2 });
    expect(asked(rig.model.requests[1])).toEqual(['user: m0', 'assistant: answered m0', ...[1, 2, 3, 4, 5].map((n) => `user: m${n}`)]);
  });

  it('C38 25 sends of which some come while turns end and start are there once, in order, and each is answered', async () => {
    await open();
    rig.model.fallback = () => says('ok');
    const turns = new Set<string>();
    let session_id: string | undefined;
    for (let n = 0; n < 25; n += 1) {
      const answer = await rig.send(`m${n}`, session_id === undefined ? {} : { session_id });
      session_id = answer.session_id;
      turns.add(answer.turn_id);
      if (n % 8 === 7) await rig.end(answer.turn_id);
      else for (let wait = 0; wait < n % 5; wait += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    for (const turn of turns) await rig.end(turn);
    await rig.until(session_id ?? '', 'completed');
    expect(turns.size).toBeGreaterThan(2);
    const { entries } = rig.disk(session_id ?? '');
    expect(userTexts(entries)).toEqual(Array.from({ length: 25 }, (_, n) => `m${n}`));
    expect(entries.at(-1)?.message?.role).toBe('assistant');
    const seen = rig.model.requests.flatMap((request) => asked(request));
    for (let n = 0; n < 25; n += 1) expect(seen).toContain(`user: m${n}`);
  });

  it('C39 20 sends at once to a new session start one turn and lose no message', async () => {
    await open();
    rig.model.fallback = () => says('ok');
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => rig.send(`m${n}`, { session_id: 'same' })));
    const first = answers.filter((answer) => answer.merged !== true);
    for (const { turn_id } of answers) await rig.end(turn_id);
    await rig.until('same', 'completed');
    expect(first.length).toBeGreaterThanOrEqual(1);
    expect(new Set(first.map((answer) => answer.turn_id)).size).toBe(first.length);
    expect(userTexts(rig.disk('same').entries).sort()).toEqual(Array.from({ length: 20 }, (_, n) => `m${n}`).sort());
  });

  it('changes no option of that turn', async () => {
    const first = held();
    await open(first.script, asks(agentCall('c1', 'probe::run')), says('done'));
    const called = rig.function('probe::run');
    const { session_id, turn_id } = await rig.send('go', { options: {} });
    await first.begun;
    await rig.send('now with functions', { session_id, options: { functions: { allow: ['*'] }, max_turns: 1 } });
    first.answer(text('well'));
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(called).toEqual([]);
    expect((await rig.results(session_id))[0]).toMatchObject({ is_error: true, details: { error: 'policy_denied' } });
  });

  it('of a custom role reaches the transcript and no model, and the turn keeps its result', async () => {
    const first = held();
    await open(first.script);
    const { session_id, turn_id } = await rig.send('go');
    await first.begun;
    expect(await rig.send(note('by the way'), { session_id })).toMatchObject({ turn_id, merged: true });
    first.answer(text('the answer'));
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'the answer', result_error: null });
    expect(rig.lines(session_id)).toEqual(['user: go', 'assistant: the answer', 'custom: by the way']);
    expect(rig.model.requests).toHaveLength(1);
  });

  it('of a custom role leaves a turn its output contract', async () => {
    const first = held();
    await open(first.script, says('{"n": 2}'));
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const { session_id, turn_id } = await rig.send('go', { options: { output: { type: 'json', schema } } });
    await first.begun;
    await rig.send(note('by the way'), { session_id });
    first.answer(text('{"n": "two"}'));
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: { n: 2 }, result_error: null });
  });
});

scenarios('a send into a turn that waits for a call', () => {
  it('is in the transcript at once, and the model gets it after the result', async () => {
    await open(asks(agentCall('c1', 'probe::run')), says('done'));
    rig.function('probe::run', () => 'ran');
    holdAll();
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    expect(await rig.send('and this', { session_id })).toEqual({ accepted: true, session_id, turn_id, merged: true });
    expect(await rig.send('and that', { session_id })).toMatchObject({ turn_id, merged: true });
    expect(rig.lines(session_id)).toEqual(['user: go', 'assistant: [c1]', 'user: and this', 'user: and that']);
    expect((await rig.status(session_id))?.status).toBe('awaiting_functions');
    await rig.release(session_id, turn_id, 'c1');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'done' });
    expect(asked(rig.model.requests[1])).toEqual(['user: go', 'assistant: ', 'function_result: ran', 'user: and this', 'user: and that']);
  });

  it('is answered also when the call was the last thing that the limit allowed', async () => {
    await open(asks(agentCall('c1', 'probe::run')), says('answered'));
    rig.function('probe::run');
    holdAll();
    const { session_id, turn_id } = await rig.send('go', { options: { functions: { allow: ['*'] }, max_turns: 1 } });
    await rig.until(session_id, 'awaiting_functions');
    expect(await rig.send('still there?', { session_id })).toMatchObject({ turn_id, merged: true });
    await rig.deliver(session_id, turn_id, 'c1', 'by hand');
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', reason: 'max_turns' });
    expect(await rig.end(await rig.nextTurn(session_id, turn_id))).toMatchObject({ status: 'completed', result: 'answered' });
    expect(userTexts(rig.disk(session_id).entries)).toEqual(['go', 'still there?']);
  });
});

scenarios('a message that its turn ends without', () => {
  const parkOne = async (): Promise<{ session_id: string; turn_id: string; first: ReturnType<typeof held> }> => {
    const first = held('so far');
    await open(first.script);
    const { session_id, turn_id } = await rig.send('go', { options: { max_turns: 1 } });
    await first.begun;
    expect(await rig.send('and me', { session_id, options: { system_prompt: 'mine', system_prompt_strategy: 'override' } })).toMatchObject({
      turn_id,
      merged: true,
    });
    return { session_id, turn_id, first };
  };

  it.each([
    ['fails', 'failed'],
    ['reaches its limit', 'completed'],
  ] as const)('because the turn %s is answered by a turn of its own, with the options of its own send', async (how, status) => {
    const { session_id, turn_id, first } = await parkOne();
    rig.model.plays(says('for you'));
    if (how === 'fails') first.fail('broken');
    else first.answer(text('done'));
    expect(await rig.end(turn_id)).toMatchObject({ status });
    const next = await rig.nextTurn(session_id, turn_id);
    expect(await rig.end(next)).toMatchObject({ status: 'completed', result: 'for you' });
    expect(userTexts(rig.disk(session_id).entries)).toEqual(['go', 'and me']);
    expect(rig.model.requests[1]?.system_prompt).toMatch(/^mine\n/);
  });

  it('because it was stopped joins the transcript once, and the next send has it', async () => {
    const { session_id, turn_id } = await parkOne();
    await rig.stop(session_id);
    expect(await rig.end(turn_id)).toMatchObject({ status: 'cancelled' });
    rig.model.plays(says('for both'));
    expect(await rig.turn('and now', { session_id })).toMatchObject({ status: 'completed', result: 'for both' });
    expect(userTexts(rig.disk(session_id).entries)).toEqual(['go', 'and me', 'and now']);
    expect(asked(rig.model.requests[1]).slice(-2)).toEqual(['user: and me', 'user: and now']);
  });
});

scenarios('a message that a crash left parked after the end', () => {
  /** A finished session with a parked message, as a process leaves it that dies right after the commit of the end. */
  const strand = async (): Promise<string> => {
    await open(says('hello'));
    const { session_id } = await rig.turn('hi');
    const options = rig.disk(session_id).turn?.record.options;
    if (options === undefined) throw new Error('there is no turn');
    const body: ParkedMessage = {
      entry_id: 'e_left',
      message: { role: 'user', content: [text('left behind')], timestamp: 1 },
      options,
      timestamp: 1,
    };
    await rig.close(true);
    const db = new Sqlite(join(rig.dataDir, 'harness.db'));
    db.prepare('INSERT INTO parked (session_id, entry_id, body) VALUES (?, ?, ?)').run(session_id, body.entry_id, JSON.stringify(body));
    db.close();
    return session_id;
  };

  it('C38 is answered when a worker starts', async () => {
    const session_id = await strand();
    rig = await TurnRig.open({ dataDir: rig.dataDir, role: 'worker', model: new ScriptedModel(says('found you')) });
    expect(await rig.end(await rig.nextTurn(session_id))).toMatchObject({ status: 'completed', result: 'found you' });
    expect(rig.lines(session_id)).toEqual(['user: hi', 'assistant: hello', 'user: left behind', 'assistant: found you']);
  });

  it('C38 comes before the next send', async () => {
    const session_id = await strand();
    rig = await TurnRig.open({ dataDir: rig.dataDir, model: new ScriptedModel(says('both')) });
    await rig.turn('next', { session_id });
    expect(rig.lines(session_id)).toEqual(['user: hi', 'assistant: hello', 'user: left behind', 'user: next', 'assistant: both']);
  });
});

scenarios('an idempotency key', () => {
  it('20 times at once, without a session id, makes one session, one turn, one message', async () => {
    await open(says('once'));
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.send('do it', { idempotency_key: 'k' })));
    expect(new Set(answers.map((a) => `${a.session_id} ${a.turn_id}`)).size).toBe(1);
    expect(answers.filter((a) => a.deduplicated !== true)).toHaveLength(1);
    const { session_id, turn_id } = answers[0] ?? { session_id: '', turn_id: '' };
    await rig.end(turn_id);
    expect(rig.lines(session_id)).toEqual(['user: do it', 'assistant: once']);
    expect((await rig.call<{ sessions: unknown[] }>('session::list')).sessions).toHaveLength(1);
  });

  it('20 times at once into a running turn parks one message', async () => {
    const first = held();
    await open(first.script, says('second'));
    const { session_id, turn_id } = await rig.send('go');
    await first.begun;
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.send('more', { session_id, idempotency_key: 'k' })));
    expect(answers.every((answer) => answer.turn_id === turn_id)).toBe(true);
    expect(answers.filter((answer) => answer.merged === true)).toHaveLength(1);
    first.answer(text('first'));
    await rig.end(turn_id);
    expect(rig.lines(session_id)).toEqual(['user: go', 'assistant: first', 'user: more', 'assistant: second']);
  });

  it('used again after the turn, and in another process, is answered with the first turn and stores nothing', async () => {
    await open(says('once'));
    const first = await rig.send('do it', { idempotency_key: 'k' });
    await rig.end(first.turn_id);
    const again = { accepted: true, session_id: first.session_id, turn_id: first.turn_id, deduplicated: true };
    expect(await rig.send('do it', { idempotency_key: 'k' })).toEqual(again);
    await rig.close(true);
    rig = await TurnRig.open({ dataDir: rig.dataDir });
    expect(await rig.send('do it', { idempotency_key: 'k' })).toEqual(again);
    expect(rig.lines(first.session_id)).toEqual(['user: do it', 'assistant: once']);
  });

  it('used for another message is refused and stores nothing', async () => {
    await open(says('once'));
    const { session_id } = await rig.turn('do it', { idempotency_key: 'k' });
    await expect(rig.send('do that', { idempotency_key: 'k' })).rejects.toThrow(/^harness\/idempotency_conflict: idempotency_key "k"/);
    await expect(rig.send('do it', { idempotency_key: 'k', session_id })).rejects.toThrow('harness/idempotency_conflict');
    expect(rig.lines(session_id)).toEqual(['user: do it', 'assistant: once']);
  });

  it('that is older than its time to live is a new message, in the same session too', async () => {
    rig = await TurnRig.open({ model: new ScriptedModel(says('first'), says('second')), config: 'idem_ttl_secs: 60\n' });
    const first = await rig.turn('do it', { session_id: 'one', idempotency_key: 'k' });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 });
    const second = await rig.send('do it', { session_id: 'one', idempotency_key: 'k' });
    expect(second.deduplicated).not.toBe(true);
    expect(second.turn_id).not.toBe(first.turn_id);
    await rig.end(second.turn_id);
    expect(await rig.send('do it', { session_id: 'one', idempotency_key: 'k' })).toMatchObject({
      turn_id: second.turn_id,
      deduplicated: true,
    });
    expect(rig.lines('one')).toEqual(['user: do it', 'assistant: first', 'user: do it', 'assistant: second']);
  });
});

scenarios('an idempotency key that the store has lost', () => {
  const entry = (text: string): JsonObject => ({
    session_id: 'one',
    entry_id: entryIds.idempotent('k'),
    message: { role: 'user', content: [{ type: 'text', text }], timestamp: Date.now() },
  });

  it('neither has its message stored twice nor is taken for another one', async () => {
    await open(says('once'));
    await rig.call('session::ensure', { session_id: 'one' });
    await rig.call('session::append', entry('do it'));
    await expect(rig.send('do that', { session_id: 'one', idempotency_key: 'k' })).rejects.toThrow('harness/idempotency_conflict');
    const answer = await rig.send('do it', { session_id: 'one', idempotency_key: 'k' });
    await rig.end(answer.turn_id);
    expect(rig.lines('one')).toEqual(['user: do it', 'assistant: once']);
  });
});

scenarios('custom-role messages', () => {
  it('C19 complete without a model call over an empty or an answered conversation, and no request ever holds them', async () => {
    await open(says('hello'));
    const woken = await rig.turn(note('first of all'), { session_id: 'one' });
    expect(woken).toMatchObject({ status: 'completed', reason: 'nothing_to_reply', result: null });
    await rig.turn('hi', { session_id: 'one' });
    expect(await rig.turn(note('tick'), { session_id: 'one' })).toMatchObject({ status: 'completed', reason: 'nothing_to_reply' });
    expect(rig.model.requests.map(asked)).toEqual([['user: hi']]);
    expect(rig.lines('one')).toEqual(['custom: first of all', 'user: hi', 'assistant: hello', 'custom: tick']);
  });

  it('C19 behind a question that a failure left unanswered have it answered', async () => {
    await open(fails('out of order'), says('better now'));
    await rig.turn('hi', { session_id: 'one' });
    expect(await rig.turn(note('try again'), { session_id: 'one' })).toMatchObject({ status: 'completed', result: 'better now' });
  });
});

scenarios('what comes with a send', () => {
  it('title and metadata are used only by the send that makes the session', async () => {
    await open(says('one'), says('two'));
    await rig.turn('hi', { session_id: 'one', session: { title: 'First', metadata: { by: 'test' } } });
    await rig.turn('hi again', { session_id: 'one', session: { title: 'Second', metadata: { by: 'somebody' } } });
    expect(await rig.call<{ meta: SessionMeta }>('session::get', { session_id: 'one' })).toMatchObject({
      meta: { title: 'First', metadata: { by: 'test' } },
    });
    await expect(rig.send('x', { session: { metadata: 'no object' } })).rejects.toThrow('harness/invalid_request: session.metadata');
  });

  it.each([
    ['a mark of direction', 's\u202eone'],
    ['an isolate', 's\u2066one'],
    ['a character of no width', 's\u200bone'],
    ['a control character', 's\u0007one'],
    ['a line separator', 's\u2028one'],
    ['a space', 's one'],
    ['half of a pair', 's\ud800one'],
    ['nothing', ''],
  ])('a session_id with %s is refused, and nothing is stored', async (_what, session_id) => {
    await open();
    await expect(rig.send('hi', { session_id })).rejects.toThrow('harness/invalid_request: session_id must be');
    expect(await rig.call('session::list')).toMatchObject({ sessions: [] });
  });

  it('a session_id that looks like a path is an id like any other', async () => {
    await open(says('hello'));
    expect(await rig.turn('hi', { session_id: '../../etc/passwd' })).toMatchObject({ status: 'completed', result: 'hello' });
    expect(rig.lines('../../etc/passwd')).toEqual(['user: hi', 'assistant: hello']);
  });

  it('a function of a turn may send also when its turn has ended: it starts a turn of its own, with its own options', async () => {
    await open(says('one'), says('two'));
    const { session_id, turn_id } = await rig.turn('hi', { session_id: 'one', options: { functions: { allow: ['*'] } } });
    const agent = { session_id, turn_id, depth: 0 };
    const sent = await rig.call<{ turn_id: string }>(
      'harness::send',
      { session_id: 'two', message: 'it is ready', model: 'scripted-1' },
      { agent },
    );
    expect(await rig.end(sent.turn_id)).toMatchObject({ status: 'completed', result: 'two' });
    expect(rig.disk('two').turn?.record).toMatchObject({ depth: 0, parent: null, options: { functions: null } });
  });

  it('its metadata reaches the hooks of its turn, not those of the turn that it joins', async () => {
    const first = held();
    await open(first.script, asks(agentCall('c1', 'probe::run')), says('done'), says('next'));
    rig.function('probe::run');
    const seen: unknown[] = [];
    for (const point of ['pre-turn', 'pre-generate', 'post-generate', 'pre-trigger', 'post-trigger']) {
      rig.on(`harness::hook::${point}`, `hook::${point}`, (input: HookInput) => void seen.push(input.metadata));
    }
    const { session_id, turn_id } = await rig.send('go', { options: { functions: { allow: ['*'] }, metadata: { tenant: 'a' } } });
    await first.begun;
    await rig.send('more', { session_id, options: { metadata: { tenant: 'b' } } });
    first.answer(text('well'));
    await rig.end(turn_id);
    expect(seen).toHaveLength(9);
    expect(new Set(seen.map((metadata) => JSON.stringify(metadata)))).toEqual(new Set(['{"tenant":"a"}']));
    await rig.turn('next', { session_id });
    expect(seen.slice(9)).toEqual([undefined, undefined, undefined]);
  });
});
