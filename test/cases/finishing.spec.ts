import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { HarnessError, type TurnCompletedEvent } from '#libs/contracts';
import { DATABASE_FILE } from '#libs/local';
import { SqliteJournal } from '../../libs/local/src/turns/journal.js';
import { text } from '../support/scripted-model.js';
import { fails, says } from '../support/scripts.js';
import { TurnRig } from '../support/turn-rig.js';

const SETTINGS = 'step_max_retries: 0\nstep_backoff_ms: 5\n';
let rig: TurnRig;
let told: unknown[];
afterEach(async () => {
  vi.restoreAllMocks();
  await rig.close();
});

async function open(): Promise<void> {
  rig = await TurnRig.open({ config: SETTINGS });
  told = rig.on('harness::turn-completed', 'probe::ended', () => null);
}

/** The commits of these points fail as often as they say, after they were stored or instead. */
function breakCommits(points: { [point: string]: { times: number; stored: boolean } }): void {
  const { commit } = SqliteJournal.prototype;
  vi.spyOn(SqliteJournal.prototype, 'commit').mockImplementation(async function (this: SqliteJournal, writes, point) {
    const fault = points[point];
    if (fault === undefined || fault.times === 0) return await commit.call(this, writes, point);
    fault.times -= 1;
    if (fault.stored) await commit.call(this, writes, point);
    throw new HarnessError('harness/storage', `no answer to ${point} in time`, { retry: 'retry' });
  });
}

/** The turn has ended once, for everybody who is told of it, and the session takes the next message. */
async function expectOneEnd(sessionId: string, turnId: string, status: string): Promise<void> {
  expect(await rig.end(turnId)).toMatchObject({ status });
  expect(rig.disk(sessionId)).toMatchObject({ turn: { status, job_step: null }, status: status === 'failed' ? 'error' : 'done' });
  rig.model.plays(says('All well.'));
  expect(await rig.turn('and now?', { session_id: sessionId })).toMatchObject({ status: 'completed', result: 'All well.' });
  expect(rig.events.filter((event) => event.type === 'turn_finished' && event.turn_id === turnId)).toHaveLength(1);
  await vi.waitFor(() => expect(told).toHaveLength(2));
  expect((told as TurnCompletedEvent[]).map((event) => event.status)).toEqual([status, 'completed']);
}

describe.each([
  { how: 'is stored, but its answer is lost', stored: true },
  { how: 'is not stored', stored: false },
])('C02 the write of an end that $how', ({ stored }) => {
  it('leaves a turn that succeeded ended once', async () => {
    await open();
    rig.model.fallback = () => says('Hello.');
    breakCommits({ 'turn-completed': { times: 1, stored }, 'step-failed': { times: 0, stored } });
    const { session_id, turn_id } = await rig.send('hi');
    await expectOneEnd(session_id, turn_id, 'completed');
  });

  it('leaves a turn that failed ended once', async () => {
    await open();
    rig.model.plays(fails('no such model'));
    breakCommits({ 'turn-failed': { times: 1, stored } });
    const { session_id, turn_id } = await rig.send('hi');
    await expectOneEnd(session_id, turn_id, 'failed');
  });

  it('leaves a turn ended once that is refused several times, and asks its model once', async () => {
    await open();
    rig.model.plays(says('kept'));
    breakCommits({ 'turn-completed': { times: 2, stored: false }, 'step-failed': { times: 1, stored } });
    const { session_id, turn_id } = await rig.send('hi');
    await expectOneEnd(session_id, turn_id, 'completed');
    expect(rig.reports.filter((report) => report.includes('is tried again'))).toEqual([]);
  });

  it('does not leave a message behind that was sent meanwhile', async () => {
    await open();
    rig.model.plays(async (_request, writer) => {
      await rig.send('and this', { session_id: 's_late' });
      await writer.send({
        type: 'error',
        error: {
          role: 'assistant',
          content: [text('half')],
          model: 'm',
          provider: 'scripted',
          stop_reason: 'error',
          error_kind: 'permanent',
          error_message: 'broke',
          timestamp: 1,
        },
      });
    }, says('Answered.'));
    breakCommits({ 'turn-failed': { times: 1, stored } });
    const { turn_id } = await rig.send('hi', { session_id: 's_late' });
    await rig.end(turn_id);
    const next = await rig.nextTurn('s_late', turn_id);
    expect(await rig.end(next)).toMatchObject({ status: 'completed', result: 'Answered.' });
    expect(rig.lines('s_late').filter((line) => line === 'user: and this')).toHaveLength(1);
  });
});

it('C02 a database that refuses the end for a while gets it once it takes it', async () => {
  await open();
  rig.model.fallback = () => says('Hello.');
  const db = new Sqlite(join(rig.dataDir, DATABASE_FILE));
  db.exec(
    `CREATE TRIGGER refuse BEFORE UPDATE ON turns WHEN NEW.status IN ('completed', 'failed') BEGIN SELECT RAISE(ABORT, 'not now'); END`,
  );
  const { session_id, turn_id } = await rig.send('hi');
  await vi.waitFor(() => expect(rig.reports.join()).toContain('tried again'), { timeout: 5_000 });
  expect(await rig.status(session_id)).toMatchObject({ status: 'running' });
  expect(told).toEqual([]);
  db.exec('DROP TRIGGER refuse');
  db.close();
  await expectOneEnd(session_id, turn_id, 'completed');
});
