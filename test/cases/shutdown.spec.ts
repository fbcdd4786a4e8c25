import { afterEach, expect, it } from 'vitest';
import { gate } from '../support/gate.js';
import { agentCall } from '../support/scripted-model.js';
import { asks, fails, held, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(() => rig.close());

/** Closes the runtime, which must be soon, and opens another over the same data folder. */
async function restart(prepare?: (next: TurnRig) => void, graceMs = 50): Promise<void> {
  const begun = performance.now();
  await rig.runtime.close(graceMs);
  expect(performance.now() - begun).toBeLessThan(2_000);
  const { dataDir, model } = rig;
  rig = await TurnRig.open({
    dataDir,
    model,
    role: 'worker',
    prepare: (runtime) => prepare?.(Object.assign(Object.create(TurnRig.prototype) as TurnRig, { runtime })),
  });
}

it('C43 a turn that waits for a held call holds up no shutdown, and is released after the next start', async () => {
  rig = await TurnRig.open();
  const hold = (one: TurnRig): void => void one.on('harness::hook::pre-trigger', 'gate::hold', () => ({ decision: 'hold' }));
  hold(rig);
  rig.function('probe::run');
  rig.model.plays(asks(agentCall('c1', 'probe::run')), says('Released.'));
  const { session_id, turn_id } = await rig.send('go');
  await rig.until(session_id, 'awaiting_functions');
  await restart((next) => {
    hold(next);
    next.function('probe::run');
  });
  expect(await rig.release(session_id, turn_id, 'c1')).toMatchObject({ resolved: true });
  expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'Released.' });
});

it('C43 a step that waits for its next try holds up no shutdown, and is tried after the next start', async () => {
  rig = await TurnRig.open({ config: 'step_backoff_ms: 700\nstep_max_retries: 3\n' });
  rig.model.plays(fails('overloaded', 'transient', 'half '), says('Whole.'));
  const { turn_id } = await rig.send('go');
  await rig.seen(
    'a notice',
    (event): event is Extract<typeof event, { type: 'notice' }> => event.type === 'notice' && event.turn_id === turn_id,
  );
  await restart();
  expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'Whole.' });
});

it('C43 a stream that goes on for ever is cut at the end of the grace time, and begun again at once after the next start, however often', async () => {
  rig = await TurnRig.open();
  const streams = [held('never '), held('never '), held('never ')];
  rig.model.plays(...streams.map((stream) => stream.script), says('At last.'));
  const { session_id, turn_id } = await rig.send('go');
  for (const stream of streams) {
    await stream.begun;
    await restart();
  }
  expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'At last.' });
  expect(rig.lines(session_id)).toEqual(['user: go', 'assistant: At last.']);
  expect(rig.disk(session_id).turn?.record.failures).toBe(0);
});

it('C43 no step begins while the end waits for a job of a queue', async () => {
  rig = await TurnRig.open({ role: 'worker' });
  const [running, over] = [gate(), gate()];
  rig.function('job::slow', async () => {
    running.open();
    await over.promise;
  });
  rig.model.fallback = () => says('At last.');
  await rig.runtime.bus.trigger({ function_id: 'job::slow', payload: {}, action: { type: 'enqueue', queue: 'default' } });
  await running.promise;
  const closed = rig.runtime.close(30_000);
  const { session_id } = await rig.send('late');
  over.open();
  await closed;
  expect(rig.model.requests).toEqual([]);
  const { dataDir, model } = rig;
  rig = await TurnRig.open({ dataDir, model, role: 'worker' });
  await rig.until(session_id, 'completed');
  expect(rig.faults()).toEqual([]);
});
