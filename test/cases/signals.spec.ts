import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, eventsOf, folder, here, type Running, start, statusOf } from '../cli/harness-cli.js';
import { readDisk } from '../support/disk.js';
import { lines } from '../support/lines.js';

beforeAll(ensureBuilt, 180_000);

const SAYING = 'one two three four five six seven eight nine ten eleven twelve';
const SLOW = `/slow 100\n/say ${SAYING}`;

/** Goes on with what is left of a session as any other process would, and gives its conversation. */
async function finished(dataDir: string, session: string): Promise<string[]> {
  const { turn } = await statusOf(dataDir, session);
  if (turn?.status === 'running') {
    const serve = start(['serve', '--data-dir', dataDir]);
    await serve.until('stdout', /ready/);
    expect((await here(['status', session, '--watch', '--data-dir', dataDir])).code).toBe(0);
    serve.signal('SIGTERM');
    expect((await serve.result).code).toBe(0);
  }
  return lines(readDisk(dataDir).sessions.find((one) => one.session_id === session)?.entries ?? []);
}

describe('C08 a message that was answered for', () => {
  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'is there after a %s in the same moment, and is answered',
    async (signal) => {
      const dataDir = folder();
      const send = start(['send', SLOW, '--json', '--session', 's_ack', '--data-dir', dataDir]);
      await send.until('stdout', /\n/);
      send.signal(signal);
      const { code, signal: by, stdout } = await send.result;
      expect(signal === 'SIGTERM' ? code : by).toBe(signal === 'SIGTERM' ? 143 : 'SIGKILL');
      const acknowledged = eventsOf(stdout)[0];
      expect(acknowledged).toMatchObject({ session_id: 's_ack', turn_id: expect.stringMatching(/^t_/) as string });
      const [session] = readDisk(dataDir).sessions;
      expect(session?.turn?.record.turn_id).toBe(acknowledged?.turn_id);
      expect(lines(session?.entries ?? [])[0]).toBe(`user: ${SLOW}`);
      expect(await finished(dataDir, 's_ack')).toEqual([`user: ${SLOW}`, `assistant: ${SAYING}`]);
    },
    60_000,
  );
});

describe('C49 signals to a process whose turn streams', () => {
  /** Has a message left for a worker, and a worker that streams its answer. */
  async function serving(dataDir: string, session: string): Promise<Running> {
    expect((await here(['send', SLOW, '--no-wait', '--session', session, '--data-dir', dataDir])).code).toBe(0);
    const serve = start(['serve', '--data-dir', dataDir]);
    await serve.until('stdout', /ready/);
    for (let tries = 0; !JSON.stringify(readDisk(dataDir).sessions).includes('"text":"one'); tries += 1) {
      if (tries > 300) throw new Error('the turn did not begin to stream');
      await sleep(10);
    }
    return serve;
  }

  it('one lets the worker finish the step, then it leaves with 0', async () => {
    const dataDir = folder();
    const serve = await serving(dataDir, 's_one');
    serve.signal('SIGTERM');
    const { code, stderr } = await serve.result;
    expect(code).toBe(0);
    expect(stderr.match(/draining/g)).toHaveLength(1);
    expect(lines(readDisk(dataDir).sessions[0]?.entries ?? [])).toEqual([`user: ${SLOW}`, `assistant: ${SAYING}`]);
  }, 60_000);

  it('SIGTERM and SIGINT end it soon, once, with what was said so far on disk; the turn goes on elsewhere', async () => {
    const dataDir = folder();
    const serve = await serving(dataDir, 's_two');
    const begun = Date.now();
    serve.signal('SIGTERM');
    serve.signal('SIGINT');
    const { code, signal, stderr } = await serve.result;
    expect(Date.now() - begun).toBeLessThan(8_000);
    expect([signal, [0, 130, 143].includes(code ?? -1)]).toEqual([null, true]);
    expect(stderr.match(/draining/g)).toHaveLength(1);
    expect(stderr).not.toMatch(/\n\s+at /);
    const [session] = readDisk(dataDir).sessions;
    expect(lines(session?.entries ?? [])[1]).toMatch(/^assistant: one/);
    expect(await finished(dataDir, 's_two')).toEqual([`user: ${SLOW}`, `assistant: ${SAYING}`]);
  }, 60_000);

  it('three at once leave as the third says, and never hang', async () => {
    const dataDir = folder();
    const serve = await serving(dataDir, 's_three');
    for (const signal of ['SIGTERM', 'SIGTERM', 'SIGINT'] as const) {
      serve.signal(signal);
      await sleep(20); // signals of one kind that come at the same moment are one
    }
    const { code, signal } = await serve.result;
    expect([signal, [0, 130].includes(code ?? -1)]).toEqual([null, true]);
    expect(await finished(dataDir, 's_three')).toEqual([`user: ${SLOW}`, `assistant: ${SAYING}`]);
  }, 60_000);
});
