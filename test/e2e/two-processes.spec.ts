import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildTools } from '../support/build-tools.js';
import { type Disk, readDisk } from '../support/disk.js';
import { sessionFaults, userTexts } from '../support/invariants.js';
import type { ClientLine, ClientPlan, ClientSend } from './client.js';

type Acked = Extract<ClientLine, { type: 'acked' }>;
interface Ended {
  acked: Acked[];
  completed: number;
  stderr: string;
  code: number | null;
}

let tools = '';
beforeAll(async () => {
  tools = await buildTools();
}, 60_000);

/** Starts a process for each list of lanes over one data folder, lets them begin at the same moment, and waits for their end. */
async function together(clients: ClientSend[][][]): Promise<{ disk: Disk; ended: Ended[]; acked: Acked[] }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-processes-'));
  const running = clients.map((lanes) => start({ dataDir, lanes }));
  await Promise.all(running.map((client) => client.ready));
  for (const client of running) client.go();
  const ended = await Promise.all(running.map((client) => client.ended));
  const disk = readDisk(dataDir);
  rmSync(dataDir, { recursive: true });
  return { disk, ended, acked: ended.flatMap((client) => client.acked) };
}

function start(plan: ClientPlan): { ready: Promise<void>; go: () => void; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [join(tools, 'test', 'e2e', 'client.js'), JSON.stringify(plan)], { stdio: 'pipe' });
  const ended: Ended = { acked: [], completed: 0, stderr: '', code: null };
  child.stderr.on('data', (chunk: Buffer) => {
    ended.stderr += chunk.toString();
  });
  let isReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as ClientLine;
    if (line.type === 'ready') isReady();
    if (line.type === 'acked') ended.acked.push(line);
    if (line.type === 'done') ended.completed = line.completed;
  });
  return {
    ready: Promise.race([ready, new Promise<void>((resolve) => child.once('close', () => resolve()))]),
    go: () => child.stdin.write('go\n'),
    ended: new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ ...ended, code }));
    }),
  };
}

/** Each acknowledged message is there once; every session is at rest and whole; nobody complained. */
function expectWhole({ disk, ended, acked }: { disk: Disk; ended: Ended[]; acked: Acked[] }): void {
  expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ended.map(() => ({ code: 0, stderr: '' })));
  expect(disk.integrity).toBe('ok');
  expect(disk.sessions.flatMap(sessionFaults)).toEqual([]);
  const stored = disk.sessions.flatMap((session) => userTexts(session.entries).map((text) => `${session.session_id}: ${text}`));
  expect(stored.sort()).toEqual(acked.map(({ session_id, text }) => `${session_id}: ${text}`).sort());
  const turns = new Set(acked.filter((send) => !send.merged).map((send) => send.turn_id));
  expect(acked.filter((send) => !turns.has(send.turn_id))).toEqual([]);
  expect(turns.size).toBe(acked.filter((send) => !send.merged).length);
}

/** Messages of one process in several lanes; some sessions are its own, some shared with the other processes. */
function lanesOf(process: number, count: number, lanes: number): ClientSend[][] {
  const sends = Array.from({ length: count }, (_, n): ClientSend => {
    const shared = n % 4 === 0;
    const session_id = shared ? `shared-${(n / 4) % 3}` : `own-${process}-${n % lanes}`;
    return { session_id, text: `${n % 5 === 0 ? 'tools' : 'text'} ${session_id} ${process}.${n}`, wait: !shared };
  });
  return Array.from({ length: lanes }, (_, lane) => sends.filter((_send, n) => n % lanes === lane));
}

describe('processes that share a data folder', () => {
  it('C39 and two processes with 100 turns each: first 20 sends at once to one new session, then all; nothing is lost, doubled or locked', async () => {
    const burst = (process: number): ClientSend[][] =>
      Array.from({ length: 10 }, (_, n) => [{ session_id: 'burst', text: `slow burst ${process}.${n}`, wait: true }]);
    const result = await together([0, 1].map((process) => [...burst(process), ...lanesOf(process, 100, 5)]));
    expectWhole(result);
    expect(result.acked).toHaveLength(220);
    expect(result.ended.every((client) => client.completed > 50)).toBe(true);
    const first = result.acked.filter((send) => send.session_id === 'burst');
    expect([first.length, first.some((send) => send.merged)]).toEqual([20, true]);
  }, 60_000);

  it('C46 four processes with 50 sends each', async () => {
    const result = await together([0, 1, 2, 3].map((process) => lanesOf(process, 50, 5)));
    expectWhole(result);
    expect(result.acked).toHaveLength(200);
  }, 60_000);
});
