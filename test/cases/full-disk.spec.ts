import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type SqliteConnection, SqliteWriter } from '../../libs/local/src/sqlite/index.js';
import { readDisk } from '../support/disk.js';
import { agentCall, type Scripted, text } from '../support/scripted-model.js';
import { asks, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

const LARGE = 'x'.repeat(200_000);
let rig: TurnRig;
let db: SqliteConnection;

/** The database takes no further page, as on a full disk. */
const fill = (): void => void db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true }) as number}`);
const makeRoom = (): void => void db.pragma('max_page_count = 1000000');

beforeEach(async () => {
  const { submit } = SqliteWriter.prototype;
  vi.spyOn(SqliteWriter.prototype, 'submit').mockImplementation(function (this: SqliteWriter, work, point) {
    db = (this as unknown as { db: SqliteConnection }).db;
    return submit.call(this, work, point) as never;
  });
  rig = await TurnRig.open({ config: 'step_backoff_ms: 10\nstep_max_retries: 8\nstream_coalesce_ms: 0\n' });
});
/** Runs once the feed tells that the turn waits for the store. */
function whenItWaits(run: () => void): void {
  rig.runtime.feed.subscribe((event) => {
    if (event.type === 'notice' && event.text.startsWith('The turn waits')) run();
  });
}

afterEach(async () => {
  makeRoom();
  vi.restoreAllMocks();
  await rig.close();
});

it('C48 a message that finds no room is refused with a reason, and nothing of it is stored; the next one works', async () => {
  fill();
  await expect(rig.send(LARGE, { session_id: 's_1' })).rejects.toThrow(
    /^harness\/storage: the disk that holds .* is full; nothing was written/,
  );
  expect(readDisk(rig.dataDir)).toMatchObject({ integrity: 'ok', sessions: [] });
  makeRoom();
  rig.model.plays(says('There is room.'));
  expect(await rig.turn(LARGE, { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'There is room.' });
  expect(rig.disk('s_1').entries).toHaveLength(2);
  expect(rig.faults()).toEqual([]);
});

it('C48 no function is called whose call could not be stored; once there is room the turn goes on', async () => {
  const calls = rig.function('probe::run');
  const large: Scripted = { content: [text(LARGE), agentCall('c1', 'probe::run')] };
  let asked = 0;
  rig.model.fallback = ({ messages }) => {
    if (messages.length > 1) return says('Called once.');
    asked += 1;
    fill();
    return large;
  };
  const before: number[] = [];
  whenItWaits(() => {
    before.push(calls.length);
    makeRoom();
  });
  expect(await rig.turn('go', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'Called once.' });
  expect([asked, before, calls.length]).toEqual([1, [0], 1]);
  expect(readDisk(rig.dataDir).integrity).toBe('ok');
});

it('C48 a stream goes on while its text so far cannot be stored, which is told; the whole answer is', async () => {
  rig.model.plays(async ({ model }, writer) => {
    fill();
    for (let part = 0; part < 20; part += 1) {
      await writer.send({ type: 'text_delta', delta: 'y'.repeat(10_000) });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    makeRoom();
    const message = {
      role: 'assistant' as const,
      content: [text('y'.repeat(200_000))],
      model,
      provider: 'scripted',
      stop_reason: 'end' as const,
      timestamp: 1,
    };
    await writer.send({ type: 'done', message });
  });
  expect(await rig.turn('go', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'y'.repeat(200_000) });
  expect(JSON.stringify(rig.events)).toContain('cannot be stored while it comes');
  expect(rig.lines('s_1')).toHaveLength(2);
});

it('C48 a call whose result finds no room is not made again: its result is stored once there is room', async () => {
  let calls = 0;
  rig.function('probe::run', () => {
    calls += 1;
    fill();
    return LARGE;
  });
  rig.model.fallback = ({ messages }) => {
    return messages.length === 1 ? asks(agentCall('c1', 'probe::run')) : says('It is there.');
  };
  whenItWaits(makeRoom);
  expect(await rig.turn('go', { session_id: 's_1' })).toMatchObject({ status: 'completed', result: 'It is there.' });
  expect(calls).toBe(1);
  expect(rig.lines('s_1')[2]).not.toMatch(/failed|unknown/);
});
