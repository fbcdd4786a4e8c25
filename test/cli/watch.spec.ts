import { EventEmitter } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DATABASE_FILE } from '#libs/local';
import { agentCall, text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';
import { here } from './harness-cli.js';

interface Line {
  type: 'entry' | 'turn';
  entry_id?: string;
  status?: string;
}
const linesOf = (stdout: string): Line[] =>
  stdout
    .trim()
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));
const idsOf = (stdout: string): string[] => linesOf(stdout).flatMap(({ entry_id }) => entry_id ?? []);

let rig: TurnRig;
beforeEach(async () => {
  rig = await TurnRig.open({ config: 'durability: process\nstream_coalesce_ms: 0\n' });
});
afterEach(async () => {
  await rig.close();
});

/** The ids of all entries of the session. */
async function stored(): Promise<string[]> {
  const { messages } = await rig.call<{ messages: { entry_id: string }[] }>('session::messages', {
    session_id: 's',
    limit: 500,
    include_custom: true,
  });
  return messages.map(({ entry_id }) => entry_id);
}

/** Runs `watch`, gives what it prints to `during`, and ends it by Ctrl-C when that is through. */
async function watch(argv: string[], during: (printed: () => string) => Promise<void>): Promise<{ code: number; stdout: string }> {
  const signals = new EventEmitter();
  let printed = '';
  const stdout = new PassThrough();
  stdout.setEncoding('utf8').on('data', (part: string) => {
    printed += part;
  });
  const run = here(['watch', 's', ...argv, '--data-dir', rig.dataDir], { signals, stdout });
  await during(() => printed);
  signals.emit('SIGINT');
  return { code: (await run).code, stdout: printed };
}

async function until(check: () => boolean): Promise<void> {
  for (const end = Date.now() + 20_000; !check(); ) {
    if (Date.now() > end) throw new Error('it did not come');
    await new Promise((next) => setTimeout(next, 20));
  }
}

it('tells each entry of a session once, over many turns that another runtime runs', async () => {
  rig.function('probe::run');
  rig.model.fallback = ({ messages }) =>
    messages.at(-1)?.role === 'user' ? { content: [text('calling'), agentCall('', 'probe::run')] } : { content: [text('done')] };
  await rig.turn('first', { session_id: 's' });
  const { code, stdout } = await watch(['--from', 'start', '--json'], async (printed) => {
    for (let n = 0; n < 12; n += 1) await rig.turn(`message ${n}`, { session_id: 's' });
    const count = (await stored()).length;
    await until(() => idsOf(printed()).length >= count);
  });
  expect(code).toBe(130);
  expect(idsOf(stdout)).toEqual(await stored());
  expect(linesOf(stdout).some(({ type, status }) => type === 'turn' && status === 'completed')).toBe(true);
});

it('begins with the latest question, or with an entry that is named', async () => {
  rig.model.fallback = () => ({ content: [text('an answer \u001b[2J')] });
  await rig.turn('first', { session_id: 's' });
  await rig.turn('second', { session_id: 's' });
  const ids = await stored();
  const latest = await watch([], (printed) => until(() => printed().includes('an answer')));
  expect(latest.stdout).toContain('second');
  expect(latest.stdout).not.toContain('first');
  expect(latest.stdout).not.toContain('\u001b[2J');
  const named = await watch(['--from', ids[1] ?? '', '--json'], (printed) => until(() => idsOf(printed()).length >= 3));
  expect(idsOf(named.stdout)).toEqual(ids.slice(1));
  expect((await here(['watch', 's', '--from', 'e_none', '--data-dir', rig.dataDir])).code).toBe(2);
  expect((await here(['watch', 'nobody', '--data-dir', rig.dataDir])).code).toBe(2);
});

it('C47 shows an answer as it grows, and keeps no reading open: the log file of the database stays small', async () => {
  const words = Array.from({ length: 5_000 }, (_, n) => `${n % 10} `);
  const sizes: number[] = [];
  let shown = (): string => '';
  rig.model.plays(async ({ model }, stream) => {
    await until(() => shown().includes('count'));
    for (const [n, delta] of words.entries()) {
      await stream.send({ type: 'text_delta', delta });
      if (n % 4 === 0) await new Promise((next) => setImmediate(next));
      if (n % 100 === 0) sizes.push(statSync(join(rig.dataDir, `${DATABASE_FILE}-wal`)).size);
      if (n === 2_500) await until(() => shown().includes(words.slice(0, 10).join(''))); // while it grows
    }
    const answer = { role: 'assistant', content: [text(words.join(''))], stop_reason: 'end', timestamp: 1 } as const;
    await stream.send({ type: 'done', message: { ...answer, content: [...answer.content], model, provider: 'scripted' } });
  });
  const { turn_id } = await rig.send('count', { session_id: 's' });
  const { stdout } = await watch([], async (printed) => {
    shown = printed;
    await rig.end(turn_id);
    await until(() => printed().includes(words.join('').trim()));
  });
  expect(stdout.match(/assistant/g)).toHaveLength(1);
  expect(stdout.split(words.join('').trim())).toHaveLength(2);
  expect(Math.max(...sizes)).toBeLessThan(8 * 1_048_576);
});
