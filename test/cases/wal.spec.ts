import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { DATABASE_FILE } from '#libs/local';
import { text } from '../support/scripted-model.js';
import { TurnRig } from '../support/turn-rig.js';

const MEGABYTE = 1_048_576;
const UPDATES = 5_000;

it('C47 the log file of the database stays small while somebody watches 5000 updates, and is gone after the end', async () => {
  const writer = await TurnRig.open({ config: 'durability: process\nstream_coalesce_ms: 0\n' });
  const { dataDir } = writer;
  const reader = await TurnRig.open({ dataDir, role: 'reader' });
  const log = join(dataDir, `${DATABASE_FILE}-wal`);
  const sizes: number[] = [];
  const words = Array.from({ length: UPDATES }, (_, n) => `${n % 10} `);
  writer.model.plays(async ({ model }, stream) => {
    for (const [n, delta] of words.entries()) {
      await stream.send({ type: 'text_delta', delta });
      if (n % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (n % 100 === 0) sizes.push(statSync(log).size);
    }
    const message = {
      role: 'assistant' as const,
      content: [text(words.join(''))],
      model,
      provider: 'scripted',
      stop_reason: 'end' as const,
      timestamp: 1,
    };
    await stream.send({ type: 'done', message });
  });
  const { session_id, turn_id } = await writer.send('count');
  const before = writer.runtime.commits;
  let followed = '';
  const watching = (async () => {
    for await (const event of reader.runtime.follow(session_id, turn_id, { fromStart: true }))
      if (event.type === 'text_delta') followed += event.delta;
  })();
  await writer.call('session::ensure', { session_id: 's_beside' });
  // More changes beside the stream, so that every reading of the watcher falls among writes.
  for (let n = 0; n < UPDATES / 10; n += 1) {
    await writer.call('session::append', {
      session_id: 's_beside',
      message: { role: 'user', content: [text(`message ${n}`)], timestamp: n },
    });
  }
  expect(await writer.end(turn_id)).toMatchObject({ status: 'completed' });
  await watching;
  expect(followed).toBe(words.join(''));
  expect(writer.runtime.commits - before).toBeGreaterThan(UPDATES / 10);
  expect(Math.max(...sizes)).toBeLessThan(8 * MEGABYTE);

  const idle = new Sqlite(join(dataDir, DATABASE_FILE));
  expect(idle.pragma('wal_checkpoint(TRUNCATE)')).toEqual([{ busy: 0, log: 0, checkpointed: 0 }]); // nobody reads on
  idle.close();
  await writer.close(true);
  await reader.close(true);
  expect(existsSync(log)).toBe(false);
  rmSync(dataDir, { recursive: true });
});

it('C47 updates of a stream are put together: 5000 deltas are few commits', async () => {
  const rig = await TurnRig.open();
  rig.model.plays(async ({ model }, stream) => {
    for (let n = 0; n < UPDATES; n += 1) await stream.send({ type: 'text_delta', delta: 'word ' });
    const message = {
      role: 'assistant' as const,
      content: [text('word '.repeat(UPDATES))],
      model,
      provider: 'scripted',
      stop_reason: 'end' as const,
      timestamp: 1,
    };
    await stream.send({ type: 'done', message });
  });
  const before = rig.runtime.commits;
  const begun = performance.now();
  await rig.turn('talk');
  expect(rig.runtime.commits - before).toBeLessThan(10 + (performance.now() - begun) / 100);
  await rig.close();
});
