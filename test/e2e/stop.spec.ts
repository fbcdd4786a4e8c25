import { afterEach, expect, it } from 'vitest';
import { type TurnCompletedEvent, textOf } from '#libs/contracts';
import { gate } from '../support/gate.js';
import { scenarios } from '../support/replay.js';
import { agentCall, type Scripted, ScriptedModel } from '../support/scripted-model.js';
import { asks, held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
/** The `turn-completed` events that came. */
let completed: TurnCompletedEvent[];
afterEach(async () => {
  expect(rig.faults()).toEqual([]);
  await rig.close();
});

const open = async (...script: Scripted[]): Promise<void> => {
  rig = await TurnRig.open({ model: new ScriptedModel(...script) });
  completed = rig.on('harness::turn-completed', 'watch::completed', () => undefined) as TurnCompletedEvent[];
};
const errorOf = (result: { details: unknown } | undefined): unknown => (result?.details as { error?: unknown } | null)?.error;

/** Stops the session, and checks what holds for every stop: soon, once, and the conversation goes on. */
async function stopped(session_id: string, turn_id: string, times = 1): Promise<void> {
  const started = performance.now();
  const answers = await Promise.all(Array.from({ length: times }, () => rig.stop(session_id)));
  expect(answers.some((answer) => answer.stopping)).toBe(true);
  const ended = await rig.end(turn_id);
  expect(performance.now() - started).toBeLessThan(1_000);
  expect(ended).toMatchObject({ status: 'cancelled', reason: 'stopped' });
  expect(await rig.stop(session_id)).toEqual({ stopping: false });
  const requests = rig.model.requests.length;
  rig.model.plays(says('go on'));
  expect(await rig.turn('and now?', { session_id })).toMatchObject({ status: 'completed', result: 'go on' });
  expect(rig.model.requests.length).toBe(requests + 1);
  expect(completed.filter((event) => event.turn_id === turn_id)).toMatchObject([{ status: 'cancelled', terminal: true }]);
  expect(rig.lines(session_id).filter((line) => line === '(notice)')).toHaveLength(1);
}

scenarios('a stop', () => {
  it('C05 of a stream, six times at once, closes it and keeps the text; half a call is dropped', async () => {
    const closed = gate();
    const begun = gate();
    await open(async (_request, writer) => {
      writer.signal.addEventListener('abort', () => closed.open());
      for (const frame of [
        { type: 'text_start' },
        { type: 'text_delta', delta: 'The first half' },
        { type: 'text_end' },
        { type: 'functioncall_start', id: 'c1' },
        { type: 'functioncall_delta', delta: '{"function": "probe' },
      ]) {
        await writer.send(frame);
      }
      begun.open();
      await closed.promise;
    });
    const got = rig.function('probe::run');
    const { session_id, turn_id } = await rig.send('go');
    await begun.promise;
    await rig.seen('the text', (event): event is Extract<typeof event, { type: 'text_delta' }> => event.type === 'text_delta');
    await stopped(session_id, turn_id, 6);
    await closed.promise;
    expect(got).toEqual([]);
    const [, answer] = await rig.entries(session_id);
    expect(answer).toMatchObject({
      kind: 'message',
      message: { role: 'assistant', stop_reason: 'aborted', content: [{ type: 'text', text: 'The first half' }] },
    });
  });

  it('C05 again and again, one after the other, is answered without an effect', async () => {
    const first = held('so far');
    await open(first.script);
    const { session_id, turn_id } = await rig.send('go');
    await first.begun;
    const answers: boolean[] = [];
    for (let n = 0; n < 6; n += 1) answers.push((await rig.stop(session_id, turn_id)).stopping);
    await rig.end(turn_id);
    expect(answers[0]).toBe(true);
    expect(completed).toHaveLength(1);
    expect(await rig.stop(session_id, 't_of_another_turn')).toEqual({ stopping: false });
    expect(await rig.stop('no_such_session')).toEqual({ stopping: false });
  });

  it('C28 of a call that takes no notice ends the turn; what the call does later changes nothing', async () => {
    const [called, late] = [gate(), gate<string>()];
    await open(asks(agentCall('c1', 'probe::stubborn'), agentCall('c2', 'probe::next')));
    rig.function('probe::stubborn', () => {
      called.open();
      return late.promise;
    });
    const next = rig.function('probe::next');
    const { session_id, turn_id } = await rig.send('go');
    await called.promise;
    await rig.send('are you there?', { session_id });
    await stopped(session_id, turn_id);
    late.open('too late');
    await new Promise((resolve) => setImmediate(resolve));
    expect(next).toEqual([]);
    const results = await rig.results(session_id);
    expect(results.map((r) => [r.function_call_id, r.is_error, errorOf(r)])).toEqual([
      ['c1', true, 'stopped'],
      ['c2', true, 'stopped'],
    ]);
    expect(results.map((r) => textOf(r.content).includes('may have run'))).toEqual([true, false]);
    expect(rig.lines(session_id).filter((line) => line === 'user: are you there?')).toHaveLength(1);
  });

  it('of a call that heeds its signal gives it the signal', async () => {
    const [called, told] = [gate(), gate()];
    await open(asks(agentCall('c1', 'probe::polite')));
    rig.runtime.bus.registerFunction({ id: 'probe::polite' }, (_payload, context) => {
      context.signal.addEventListener('abort', () => told.open());
      called.open();
      return new Promise(() => undefined);
    });
    const { session_id, turn_id } = await rig.send('go');
    await called.promise;
    await stopped(session_id, turn_id);
    await told.promise;
  });

  it.each(['pre-turn', 'pre-generate', 'post-generate', 'pre-trigger', 'post-trigger'])(
    'does not wait for a %s hook that hangs',
    async (point) => {
      const asked = gate();
      await open();
      rig.model.fallback = ({ messages }) =>
        textOf(messages.at(-1)?.content ?? []) === 'and now?' ? says('go on') : asks(agentCall('c1', 'probe::run'));
      rig.function('probe::run', () => 'not to be seen unmasked');
      const hang = (): Promise<never> => {
        asked.open();
        return new Promise(() => undefined);
      };
      rig.function('hook::hang', hang);
      const binding = rig.bind(`harness::hook::${point}`, 'hook::hang');
      const { session_id, turn_id } = await rig.send('go');
      await asked.promise;
      expect(await rig.stop(session_id)).toEqual({ stopping: true });
      await rig.end(turn_id);
      binding.unregister();
      expect(completed.filter((event) => event.turn_id === turn_id)).toMatchObject([{ status: 'cancelled' }]);
      expect(await rig.turn('and now?', { session_id })).toMatchObject({ result: 'go on' });
      expect(JSON.stringify([rig.disk(session_id), rig.events])).not.toContain('not to be seen unmasked');
    },
  );

  it('C15 of a turn that waits for held calls settles them, and a late release does nothing', async () => {
    await open(asks(agentCall('c1', 'probe::run'), agentCall('c2', 'probe::free'), agentCall('c3', 'probe::run')));
    const got = rig.function('probe::run');
    rig.function('probe::free');
    rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }), { functions: ['probe::run'] });
    const { session_id, turn_id } = await rig.send('go');
    await rig.until(session_id, 'awaiting_functions');
    await stopped(session_id, turn_id, 3);
    expect(await rig.release(session_id, turn_id, 'c1')).toEqual({ resolved: false, turn_resumed: false });
    expect(await rig.deliver(session_id, turn_id, 'c3', 'late')).toEqual({ resolved: false, turn_resumed: false });
    expect(await rig.call('harness::sweep-pending')).toEqual({ ok: true, resolved: 0 });
    expect(got).toEqual([]);
    expect((await rig.results(session_id)).map((r) => [r.function_call_id, errorOf(r)])).toEqual([
      ['c2', undefined],
      ['c1', 'stopped'],
      ['c3', 'stopped'],
    ]);
  });

  it('C15 against a release of the same call, many times, leaves one result each', async () => {
    rig = await TurnRig.open();
    rig.model.fallback = ({ messages }) => (messages.at(-1)?.role === 'user' ? asks(agentCall('c1', 'probe::run')) : says('done'));
    const got = rig.function('probe::run');
    rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }));
    const outcomes = new Set<string>();
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const { session_id, turn_id } = await rig.send('go');
        await rig.until(session_id, 'awaiting_functions');
        const [release, stop] =
          n % 2 === 0
            ? [rig.release(session_id, turn_id, 'c1'), rig.stop(session_id)]
            : [rig.stop(session_id), rig.release(session_id, turn_id, 'c1')].reverse();
        await Promise.all([release, stop]);
        outcomes.add((await rig.end(turn_id)).status);
        expect(await rig.results(session_id)).toHaveLength(1);
      }),
    );
    expect(got.length).toBeLessThanOrEqual(20);
    expect([...outcomes].every((status) => status === 'cancelled' || status === 'completed')).toBe(true);
  });

  it('of a turn ends its children and their children; none of them calls anything any more', async () => {
    await open();
    const depths = new Set<string>();
    const deepest = gate();
    rig.model.fallback = ({ messages }) => {
      const task = messages[0]?.role === 'user' ? textOf(messages[0].content) : '';
      depths.add(task);
      if (task === 'root')
        return asks(agentCall('c1', 'harness::spawn', { task: 'child' }), agentCall('c2', 'harness::spawn', { task: 'other child' }));
      if (task === 'child') return asks(agentCall('k1', 'harness::spawn', { task: 'grandchild' }));
      if (task === 'other child') return asks(agentCall('o1', 'probe::held'));
      return asks(agentCall('g1', 'probe::hang'), agentCall('g2', 'probe::never'));
    };
    rig.function('probe::hang', () => {
      deepest.open();
      return new Promise(() => undefined);
    });
    const never = [rig.function('probe::never'), rig.function('probe::held')];
    rig.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }), { functions: ['probe::held'] });
    const { session_id, turn_id } = await rig.send('root');
    await deepest.promise;
    const other = (await rig.until(session_id, 'awaiting_functions')).children.find((child) => child.function_call_id === 'c2');
    await rig.until(other?.session_id ?? '', 'awaiting_functions');
    const started = performance.now();
    expect(await rig.stop(session_id)).toEqual({ stopping: true });
    const { sessions } = await rig.call<{ sessions: { session_id: string }[] }>('session::list');
    for (const session of sessions) await rig.until(session.session_id, 'cancelled');
    expect(performance.now() - started).toBeLessThan(1_000);
    expect(sessions).toHaveLength(4);
    expect([...depths].sort()).toEqual(['child', 'grandchild', 'other child', 'root']);
    expect(never).toEqual([[], []]);
    expect(completed.map((event) => event.status)).toEqual(Array.from({ length: 4 }, () => 'cancelled'));
    expect(new Set(completed.map((event) => event.turn_id)).size).toBe(4);
    expect((await rig.end(turn_id)).status).toBe('cancelled');
    expect((await rig.results(session_id)).map(errorOf)).toEqual(['stopped', 'stopped']);
  });

  it('of a child alone is told to its parent, which goes on', async () => {
    const child = held('half of it');
    await open(asks(agentCall('c1', 'harness::spawn', { task: 'wait' })), child.script, says('without it, then'));
    const { session_id, turn_id } = await rig.send('go');
    await child.begun;
    const report = await rig.until(session_id, 'awaiting_functions');
    const childId = report.children[0]?.session_id ?? '';
    await rig.seen('the text', (event): event is Extract<typeof event, { type: 'text_delta' }> => event.type === 'text_delta');
    await rig.stop(childId);
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'without it, then' });
    expect((await rig.results(session_id))[0]).toMatchObject({
      is_error: true,
      details: { status: 'cancelled', child_session_id: childId },
    });
  });

  it('C40 right after the send, at any moment, leaves a session that takes the next message', async () => {
    await open();
    rig.model.fallback = () => says('hello');
    let confirmed = 0;
    await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const { session_id, turn_id } = await rig.send('go', { session_id: `s-${n}` });
        for (let wait = 0; wait < n; wait += 1) await new Promise((resolve) => setImmediate(resolve));
        await rig.stop(session_id);
        const { status } = await rig.end(turn_id);
        expect(['cancelled', 'completed']).toContain(status);
        if (status === 'cancelled') confirmed += 1;
        expect(await rig.turn('hi', { session_id })).toMatchObject({ status: 'completed', result: 'hello' });
        expect(completed.filter((event) => event.turn_id === turn_id)).toHaveLength(1);
      }),
    );
    expect(confirmed).toBeGreaterThan(0);
  });

  it('C40 before the step is taken up asks no model', async () => {
    rig = await TurnRig.open({ config: 'concurrency: 1\n' });
    const first = held();
    rig.model.plays(first.script);
    await rig.send('busy', { session_id: 'busy' });
    await first.begun;
    const { turn_id } = await rig.send('waits', { session_id: 'waits' });
    expect(await rig.stop('waits')).toEqual({ stopping: true });
    expect(await rig.end(turn_id)).toMatchObject({ status: 'cancelled' });
    expect(rig.model.requests).toHaveLength(1);
    await rig.stop('busy');
    await rig.until('busy', 'cancelled');
    expect(rig.lines('waits')).toEqual(['user: waits', '(notice)']);
  });

  it('I12 once answered, no function of the turn begins any more', async () => {
    await open();
    let count = 0;
    rig.model.fallback = ({ messages }) => asks(...[1, 2, 3].map((n) => agentCall(`c${messages.length}-${n}`, 'probe::count')));
    const answered = new Set<string>();
    const late: string[] = [];
    rig.runtime.bus.registerFunction({ id: 'probe::count' }, async (_payload, { metadata }) => {
      const { session_id } = (metadata as { agent: { session_id: string } }).agent;
      count += 1;
      if (answered.has(session_id)) late.push(session_id);
      await new Promise((resolve) => setImmediate(resolve));
      return 'ok';
    });
    await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const { session_id, turn_id } = await rig.send('go', {
          session_id: `s-${n}`,
          options: { functions: { allow: ['*'] }, max_turns: 1_000 },
        });
        await new Promise((resolve) => setTimeout(resolve, 5 + n * 7));
        await rig.stop(session_id);
        answered.add(session_id);
        expect((await rig.end(turn_id)).status).toBe('cancelled');
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(late).toEqual([]);
    expect(count).toBeGreaterThan(0);
  });
});
