import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { scenarios } from '../support/replay.js';
import { Rig } from '../support/rig.js';
import { agentCall } from '../support/scripted-model.js';

let rig: Rig;
afterEach(() => rig.close());

const save = (text: string): void => {
  const file = join(rig.dataDir, 'config', 'harness.yaml');
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
};
const inForce = (maxTurns: number): Promise<unknown> =>
  expect.poll(() => rig.runtime.settings.current().default_max_turns, { interval: 5, timeout: 5_000 }).toBe(maxTurns);

scenarios('a change of the configuration', () => {
  it('C56 a running turn keeps its options when the configuration changes, the next one has the new ones', async () => {
    rig = await Rig.open('worker', { 'harness.yaml': 'default_max_turns: 3\n' });
    let calls = 0;
    rig.model.fallback = () => ({ content: [agentCall(`c${++calls}`, 'probe::run', { calls })] });
    let runs = 0;
    rig.runtime.bus.registerFunction({ id: 'probe::run' }, async () => {
      if (++runs > 1) return runs;
      save('default_max_turns: 1\n');
      await inForce(1);
      return runs;
    });
    const options = { functions: { allow: ['probe::*'] } };
    const first = await rig.send('s1', 'go', { options });
    expect(await rig.over(first.turn_id)).toMatchObject({ reason: 'max_turns', steps: 3 });
    const second = await rig.send('s2', 'go', { options });
    expect(await rig.over(second.turn_id)).toMatchObject({ reason: 'max_turns', steps: 1 });
    expect(rig.faults()).toEqual([]);
  });

  it('C56 a wrong file changes nothing for turns, and is told once', async () => {
    rig = await Rig.open('worker', { 'harness.yaml': 'default_max_turns: 1\n' });
    rig.model.fallback = () => ({ content: [agentCall('c1', 'probe::run')] });
    rig.runtime.bus.registerFunction({ id: 'probe::run' }, () => null);
    save('default_max_turns: 2\nmax_depth: deep\n');
    await expect.poll(() => rig.runtime.configurationFaults().length, { interval: 5, timeout: 5_000 }).toBe(1);
    const { turn_id } = await rig.send('s1', 'go', { options: { functions: { allow: ['probe::*'] } } });
    expect(await rig.over(turn_id)).toMatchObject({ reason: 'max_turns', steps: 1 });
    expect(rig.reports).toEqual([expect.stringContaining('harness.yaml:2: max_depth must be a whole number')]);
    save('default_max_turns: 2\n');
    await inForce(2);
    expect(rig.runtime.configurationFaults()).toEqual([]);
  });
});
