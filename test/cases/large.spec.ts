import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { textOf } from '#libs/contracts';
import { DATABASE_FILE } from '#libs/local';
import { longestBlock } from '../../libs/local/src/confine/test/app.js';
import { resultOf } from '../support/lines.js';
import { agentCall } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

let rig: TurnRig;
afterEach(() => rig.close());

const MEGABYTE = 1_048_576;
const outputs: [string, () => unknown][] = [
  ['20 MB in one line', () => 'x'.repeat(20 * MEGABYTE)],
  ['5000 lines', () => Array.from({ length: 5_000 }, (_, n) => `line ${n} ${'.'.repeat(200)}`).join('\n')],
  ['what looks binary', () => '\u0000\u0001\u001b\ud800'.repeat(MEGABYTE / 4)],
  ['20 MB in an error', () => Promise.reject(new Error('e'.repeat(20 * MEGABYTE)))],
];

it.each(outputs)('C32 a function that gives %s neither fills the request nor the store, nor holds up the process', async (_what, make) => {
  rig = await TurnRig.open();
  rig.function('probe::large', make);
  rig.model.plays(asks(agentCall('c1', 'probe::large')), says('That was long.'));
  const { session_id, turn_id } = await rig.send('go');
  const blocked = await longestBlock(async () => {
    expect(await rig.end(turn_id)).toMatchObject({ status: 'completed', result: 'That was long.' });
  });
  const sent = textOf(rig.model.requests[1]?.messages.at(-1)?.content ?? []);
  expect(sent).toMatch(/^<omitted: the (?:result|error) has \d+ KB, the limit is \d+ KB; its middle is left out here>\n/);
  expect(Buffer.byteLength(JSON.stringify(rig.model.requests[1]))).toBeLessThan(MEGABYTE);
  expect(JSON.stringify(resultOf(rig.disk(session_id), 'c1')).length).toBeLessThan(MEGABYTE / 2);
  expect(statSync(join(rig.dataDir, `${DATABASE_FILE}-wal`)).size).toBeLessThan(8 * MEGABYTE);
  expect(blocked).toBeLessThan(1_000); // ms of this thread's own time; some 100 in fact
  expect(rig.faults()).toEqual([]);
});

it('C33 each request of a turn begins with all of the one before, in whatever order functions come and go', async () => {
  rig = await TurnRig.open();
  const names = ['zeta', 'alpha', 'mid', 'beta'];
  for (const name of names) rig.function(`probe::${name}`, () => `${name} ran`);
  const native = (id: string, function_id: string): ReturnType<typeof agentCall> => ({
    type: 'function_call',
    id,
    function_id,
    arguments: {},
  });
  rig.model.plays(asks(native('c1', 'probe::mid')), asks(native('c2', 'probe::zeta'), native('c3', 'probe::alpha')), says('Done.'));
  const options = { functions: { allow: ['probe::*'], expose: 'native' as const } };
  const first = await rig.turn('go', { session_id: 's_prefix', options });
  expect(first).toMatchObject({ status: 'completed' });
  rig.model.plays(says('Again.'));
  await rig.turn('and again', { session_id: 's_prefix', options });
  const parts = rig.model.requests.map(({ system_prompt, tools, messages }) => ({
    head: JSON.stringify([system_prompt, tools]),
    messages: messages.map((one) => JSON.stringify(one)),
  }));
  expect(parts).toHaveLength(4);
  expect(rig.model.requests[0]?.tools?.map((tool) => tool.name)).toEqual(names.map((name) => `probe::${name}`).sort());
  for (const [index, part] of parts.entries()) {
    const before = parts[index - 1];
    if (before === undefined) continue;
    expect(part.head).toBe(before.head);
    expect(part.messages.slice(0, before.messages.length)).toEqual(before.messages);
  }
});
