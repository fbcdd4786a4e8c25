import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AssistantMessage, type ProviderStreamRequest, type StreamFrame, textOf } from '#libs/contracts';
import { gate } from '../support/gate.js';
import { lines, resultOf } from '../support/lines.js';
import { forceReplay, MODES } from '../support/replay.js';
import { Rig } from '../support/rig.js';
import { agentCall, type Scripted, text } from '../support/scripted-model.js';

const says = (value: string): Scripted => ({ content: [text(value)] });
const lastText = (request: ProviderStreamRequest): string => textOf(request.messages.at(-1)?.content ?? []);
const answer = (request: ProviderStreamRequest, value: string): StreamFrame => {
  const message: AssistantMessage = {
    role: 'assistant',
    content: [text(value)],
    model: request.model,
    provider: 'scripted',
    stop_reason: 'end',
    timestamp: 1,
  };
  return { type: 'done', message };
};

describe.each(MODES)('stops of turns $how', ({ replay }) => {
  let rig: Rig;
  let undo: () => void = () => undefined;
  beforeAll(async () => {
    if (replay) undo = forceReplay();
    rig = await Rig.open();
  });
  afterAll(async () => {
    expect(rig.faults()).toEqual([]);
    await rig.close();
    undo();
  });

  it('C05 six stops of a stream: the text so far is kept, the half call is dropped, the model is let go, the next send works', async () => {
    const streaming = gate<AbortSignal>();
    rig.model.plays(async (_request, writer) => {
      await writer.send({ type: 'text_start' } satisfies StreamFrame);
      await writer.send({ type: 'text_delta', delta: 'I am just about to ' } satisfies StreamFrame);
      await writer.send({ type: 'text_end' } satisfies StreamFrame);
      await writer.send({ type: 'functioncall_start', id: 'half' } satisfies StreamFrame);
      await writer.send({ type: 'functioncall_delta', delta: '{"function":"ech' } satisfies StreamFrame);
      await sleep(30);
      streaming.open(writer.signal);
      await new Promise((resolve) => writer.signal.addEventListener('abort', resolve));
    });
    const { turn_id } = await rig.send('c05', 'write', { options: { functions: { allow: ['*'] } } });
    const upstream = await streaming.promise;
    const asked = performance.now();
    const answers = await Promise.all(Array.from({ length: 6 }, () => rig.stop('c05')));
    expect(await rig.over(turn_id)).toMatchObject({ status: 'cancelled', reason: 'stopped' });
    expect(performance.now() - asked).toBeLessThan(1_000);
    expect([upstream.aborted, answers[0]]).toEqual([true, { stopping: true }]);
    const stopped = rig.disk('c05');
    expect(lines(stopped.entries)).toEqual(
      ['user: write', 'assistant: I am just about to', '(notice)'].map((line) => expect.stringContaining(line) as unknown),
    );
    expect(stopped.entries[1]?.message).toMatchObject({ stop_reason: 'aborted' });
    expect(rig.events.filter((event) => event.type === 'turn_finished' && event.turn_id === turn_id)).toHaveLength(1);
    rig.model.plays(says('Here I am.'));
    expect(lines((await rig.turn('c05', 'hello?')).entries).at(-1)).toBe('assistant: Here I am.');
  });

  it('C28 a function that never returns does not hold up a stop; its late result changes nothing; the queued message is kept', async () => {
    const [running, late, ended] = [gate(), gate<string>(), gate<string>()];
    const { bus } = rig.runtime;
    const told: string[] = [];
    bus.registerFunction({ id: 'deaf::work' }, () => {
      running.open();
      return late.promise;
    });
    bus.registerFunction({ id: 'deaf::told' }, (payload) => {
      told.push((payload as { status: string }).status);
      ended.open('told');
    });
    bus.registerTrigger({ type: 'harness::turn-completed', function_id: 'deaf::told', config: { session_id: 'c28' } });
    rig.model.plays({ content: [agentCall('k1', 'deaf::work'), agentCall('k2', 'deaf::work')] });
    const { turn_id } = await rig.send('c28', 'work', { options: { functions: { allow: ['deaf::*'] } } });
    await running.promise;
    expect(await rig.send('c28', 'and then this')).toMatchObject({ merged: true, turn_id });
    const requests = rig.model.requests.length;
    const asked = performance.now();
    expect(await rig.stop('c28')).toEqual({ stopping: true });
    await rig.over(turn_id);
    expect(performance.now() - asked).toBeLessThan(2_000);
    await ended.promise;
    late.open('much too late');
    await sleep(20);
    const stopped = rig.disk('c28');
    expect(textOf(resultOf(stopped, 'k1').content)).toContain('may have run');
    expect(textOf(resultOf(stopped, 'k2').content)).toContain('was not called');
    expect(lines(stopped.entries).filter((line) => line === 'user: and then this')).toHaveLength(1);
    expect([told, rig.model.requests.length - requests, stopped.turn?.record.status]).toEqual([['cancelled'], 0, 'cancelled']);
    rig.model.plays(says('Both answered.'));
    expect(lines((await rig.turn('c28', 'go on')).entries).at(-1)).toBe('assistant: Both answered.');
    expect(
      rig.model.requests
        .at(-1)
        ?.messages.filter((message) => message.role === 'user')
        .map((message) => textOf(message.content)),
    ).toEqual(['work', 'and then this', 'go on']);
  });

  it('C40 a stop right after a send, 100 times: the session goes on, and no model is called after the answer', async () => {
    const confirmed = new Set<string>();
    const late: string[] = [];
    rig.model.fallback = (request) => async (_request, writer) => {
      const asked = lastText(request);
      if (confirmed.has(asked)) late.push(asked);
      for (let part = 0; part < 3 && !writer.signal.aborted; part += 1) {
        await writer.send({ type: 'text_delta', delta: `part ${part} ` } satisfies StreamFrame);
        await sleep(4);
      }
      await writer.send(answer(request, `answer to ${asked}`));
    };
    const one = async (n: number): Promise<string> => {
      const session = `c40-${n}`;
      const first = await rig.send(session, `first ${n}`);
      if (n % 21 > 0) await sleep(n % 21);
      if ((await rig.stop(session)).stopping) confirmed.add(`first ${n}`);
      const { status } = await rig.over(first.turn_id);
      const { entries } = await rig.turn(session, `hi ${n}`);
      expect([n, lines(entries).at(-1)]).toEqual([n, `assistant: answer to hi ${n}`]);
      return status;
    };
    const statuses: string[] = [];
    for (let n = 0; n < 100; n += 10) statuses.push(...(await Promise.all(Array.from({ length: 10 }, (_, k) => one(n + k)))));
    rig.model.fallback = undefined;
    expect(late).toEqual([]);
    expect(statuses.every((status) => status === 'cancelled' || status === 'completed')).toBe(true);
    expect(statuses.filter((status) => status === 'cancelled').length).toBeGreaterThan(20);
  });

  it('a stop of an unknown session, another turn or a finished one stops nothing', async () => {
    rig.model.plays(says('Done.'));
    const { turn } = await rig.turn('stop-none', 'hello');
    expect(await rig.stop('nobody-knows')).toEqual({ stopping: false });
    expect(await rig.stop('stop-none')).toEqual({ stopping: false });
    expect(await rig.stop('stop-none', 't_other')).toEqual({ stopping: false });
    expect(rig.disk('stop-none').turn?.record).toEqual(turn?.record);
  });

  it('a stop between the calls of a message lets the finished one keep its result', async () => {
    rig.runtime.bus.registerFunction({ id: 'self::stop' }, async () => {
      await rig.stop('between');
      return 'stopped myself';
    });
    rig.model.plays({ content: [agentCall('b1', 'self::stop'), agentCall('b2', 'self::stop')] });
    const { entries, turn } = await rig.turn('between', 'go', { options: { functions: { allow: ['self::*'] } } });
    expect(turn?.record.status).toBe('cancelled');
    expect(lines(entries)[2]).toMatch(/^b1 (ok: stopped myself|failed\(stopped\))/);
    expect(lines(entries)[3]).toMatch(/^b2 failed\(stopped\): self::stop was not called/);
  });
});
