/**
 * Measures tool turns on the embedded runtime, beside what this disk takes for one durable commit. Run by `npm run bench`.
 * A tool turn: send, a generation with one call, the call, a generation with the answer. The model and the function are
 * in the process and take no time of their own.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeStore, type EmbeddedRuntime, openRuntime, openStore } from '#libs/local';
import { benchModel } from './bench-model.js';

const percentile = (sorted: readonly number[], p: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? Number.NaN;
const sorted = (values: number[]): number[] => [...values].sort((a, b) => a - b);

/** Time of one durable commit of a row of about the size that the loop writes, in ms. */
async function bareCommits(count: number): Promise<number[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-bench-'));
  const store = await openStore({ dataDir, durability: 'power', concurrency: () => 1, report: console.error });
  const insert = store.db.prepare('INSERT INTO state (scope, key, value) VALUES (?, ?, ?)');
  const value = 'x'.repeat(1_000);
  const times: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const start = performance.now();
    await store.writer.submit(() => insert.run('bench', String(i), value), 'bench');
    times.push(performance.now() - start);
  }
  await closeStore(store);
  rmSync(dataDir, { recursive: true });
  return sorted(times);
}

class Driver {
  private readonly waiting = new Map<string, () => void>();
  failed = 0;

  constructor(private readonly runtime: EmbeddedRuntime) {
    runtime.feed.subscribe((event) => {
      if (event.type !== 'turn_finished') return;
      if (event.status !== 'completed') this.failed += 1;
      this.waiting.get(event.session_id)?.();
    });
  }

  async turn(session_id: string): Promise<number> {
    const start = performance.now();
    const done = new Promise<void>((resolve) => this.waiting.set(session_id, resolve));
    const payload = { session_id, message: 'go', model: 'bench-1', provider: 'bench', options: { functions: { allow: ['bench::*'] } } };
    await this.runtime.bus.trigger({ function_id: 'harness::send', payload });
    await done;
    return performance.now() - start;
  }

  /** Runs `turns` turns in each of `sessions` sessions, all sessions at once; returns the time of each turn and of all. */
  async run(sessions: number, turns: number, tag: string): Promise<{ times: number[]; ms: number; cpuMs: number }> {
    const times: number[] = [];
    const cpu = process.cpuUsage();
    const start = performance.now();
    const one = async (session: number): Promise<void> => {
      for (let i = 0; i < turns; i += 1) times.push(await this.turn(`${tag}-${session}`));
    };
    await Promise.all(Array.from({ length: sessions }, (_, session) => one(session)));
    const used = process.cpuUsage(cpu);
    return { times: sorted(times), ms: performance.now() - start, cpuMs: (used.user + used.system) / 1000 };
  }
}

async function main(): Promise<void> {
  const short = process.argv.includes('--short');
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-bench-'));
  const runtime = await openRuntime({ dataDir, role: 'client' });
  await benchModel(runtime.bus);
  const driver = new Driver(runtime);
  await driver.run(8, short ? 20 : 100, 'warm');
  const bare = await bareCommits(short ? 100 : 500);
  const commit = percentile(bare, 0.5);
  console.log(`one durable commit     p50 ${commit.toFixed(3)} ms   p99 ${percentile(bare, 0.99).toFixed(3)} ms`);
  let single = Number.NaN;
  for (const [sessions, turns] of short
    ? ([
        [1, 50],
        [8, 20],
        [64, 5],
      ] as const)
    : ([
        [1, 500],
        [8, 150],
        [64, 60],
      ] as const)) {
    const before = runtime.commits;
    const { times, ms, cpuMs } = await driver.run(sessions, turns, `s${sessions}`);
    const count = sessions * turns;
    if (sessions === 1) single = percentile(times, 0.5);
    console.log(
      `${String(sessions).padStart(2)} sessions at once    ${(count / (ms / 1000)).toFixed(0).padStart(5)} tool turns/s   p50 ${percentile(times, 0.5).toFixed(2)} ms   p99 ${percentile(times, 0.99).toFixed(2)} ms   ` +
        `commits/turn ${((runtime.commits - before) / count).toFixed(2)}   cpu/turn ${(cpuMs / count).toFixed(2)} ms`,
    );
  }
  console.log(`one session: p50 of a tool turn is ${(single / (4 * commit)).toFixed(2)} x four durable commits (target at most 2.5)`);
  const length = short ? 200 : 1_000;
  const times: number[] = [];
  for (let i = 0; i < length; i += 1) times.push(await driver.turn('long'));
  const early = percentile(sorted(times.slice(5, 55)), 0.5);
  const late = percentile(sorted(times.slice(-50)), 0.5);
  console.log(
    `one long session: turn 10 ${early.toFixed(2)} ms, turn ${length} ${late.toFixed(2)} ms, ratio ${(late / early).toFixed(2)} (target at most 1.30)`,
  );
  await runtime.close();
  rmSync(dataDir, { recursive: true });
  if (driver.failed > 0) throw new Error(`${driver.failed} turns did not complete`);
}

await main();
