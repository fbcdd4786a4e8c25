import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkDisk, type Known } from './check.js';
import { Life } from './life.js';
import type { PlannedSend, WorkerPlan } from './protocol.js';
import { seeded } from './random.js';
import type { Place } from './scenarios.js';

/** Lives that run at once; more do not help on a small machine. */
const LANES = 2;

/** A data folder with settings that make streams store often and retries come soon. */
function dataFolder(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-crash-'));
  mkdirSync(join(dataDir, 'config'));
  writeFileSync(join(dataDir, 'config', 'harness.yaml'), 'stream_coalesce_ms: 10\nstep_backoff_ms: 20\n');
  return dataDir;
}

/** What the lives of one data folder told. */
class Chronicle implements Known {
  readonly tried: PlannedSend[] = [];
  readonly acked = new Set<string>();
  readonly stopped = new Set<string>();

  add(life: Life): void {
    for (const line of life.lines) {
      if (line.type === 'sending') this.tried.push(line.send);
      if (line.type === 'acked') this.acked.add(line.key);
      if (line.type === 'stop-acked' && line.stopping) this.stopped.add(line.session_id);
    }
  }
}

/** A life whose end is known: what it told is written down. */
async function live(chronicle: Chronicle, plan: WorkerPlan, failpoint?: string, lead?: (life: Life) => Promise<void>): Promise<{ life: Life; killed: boolean }> {
  const life = new Life(plan, failpoint);
  const leading = lead?.(life);
  const { signal } = await life.ended;
  await leading;
  chronicle.add(life);
  return { life, killed: signal === 'SIGKILL' };
}

/** The last life, which must come to rest by itself. */
async function lastLife(chronicle: Chronicle, plan: WorkerPlan): Promise<string[]> {
  const { life } = await live(chronicle, plan);
  if (life.lines.some((line) => line.type === 'idle') && life.stderr === '') return [];
  return [`the last life did not come to rest${life.hung ? ' (it hung)' : ''}: ${life.stderr.slice(-400)}`];
}

interface Outcome { name: string; reached: boolean; faults: string[] }

/** Dies once at each of some places, and comes back. */
export class PlacesRun {
  private readonly outcomes: Outcome[] = [];

  async run(places: readonly Place[], title: 'first life' | 'takeover'): Promise<void> {
    const queue = [...places];
    const lane = async (): Promise<void> => {
      for (let place = queue.shift(); place !== undefined; place = queue.shift()) this.outcomes.push(await dieAt(place, title));
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }

  get faults(): string[] {
    return this.outcomes.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`));
  }

  get unreached(): string[] {
    return this.outcomes.filter((outcome) => !outcome.reached).map((outcome) => outcome.name);
  }

  get deaths(): number {
    return this.outcomes.filter((outcome) => outcome.reached).length;
  }

  table(): string {
    const rows = this.outcomes.map(({ name, reached, faults }) => `${name.padEnd(48)} ${reached ? 'died' : 'NOT REACHED'}   ${faults.length} violations`);
    return rows.sort().join('\n');
  }
}

async function dieAt(place: Place, title: 'first life' | 'takeover'): Promise<Outcome> {
  const dataDir = dataFolder();
  const session_id = `s-${place.kind}`;
  const send: PlannedSend = { session_id, text: `${place.kind} ${session_id} 1`, key: 'k1' };
  const chronicle = new Chronicle();
  const plan = (): WorkerPlan => ({ dataDir, sends: chronicle.acked.has(send.key) ? [] : [send] });
  const first = await live(chronicle, plan(), title === 'takeover' ? 'dispatch:after#1' : place.failpoint);
  const second = title === 'takeover' ? await live(chronicle, plan(), place.failpoint) : first;
  const name = `${title}: ${place.kind} ${place.failpoint}`;
  const faults = [...(await lastLife(chronicle, plan())), ...checkDisk(dataDir, chronicle)];
  const reached = first.killed && second.killed && !first.life.hung && !second.life.hung;
  if (faults.length === 0) rmSync(dataDir, { recursive: true });
  return { name, reached, faults: faults.map((fault) => `${fault} (${dataDir})`) };
}

/** Dies at random moments under load, many times over one data folder. */
export class RandomRun {
  readonly faults: string[] = [];
  deaths = 0;
  private messages = 0;
  private readonly random: () => number;

  constructor(private readonly seed: number) {
    this.random = seeded(seed);
  }

  /** A folder is checked after each `perFolder` deaths, so that a violation is near its cause. */
  async run(deaths: number, perFolder = 10): Promise<void> {
    for (let left = deaths; left > 0; left -= perFolder) await this.folder(Math.min(left, perFolder));
  }

  private async folder(deaths: number): Promise<void> {
    const dataDir = dataFolder();
    const chronicle = new Chronicle();
    const first = this.deaths;
    for (let n = 0; n < deaths; n += 1) {
      const load = { sessions: 6, life: this.deaths, seed: this.seed };
      const { killed } = await live(chronicle, { dataDir, sends: [], load }, undefined, async (life) => {
        await life.line('ready');
        await sleep(this.random() * 500);
        life.kill();
      });
      if (killed) this.deaths += 1;
    }
    const faults = [...(await lastLife(chronicle, { dataDir, sends: [] })), ...checkDisk(dataDir, { tried: chronicle.tried, acked: chronicle.acked })];
    this.messages += chronicle.acked.size;
    this.faults.push(...faults.map((fault) => `random deaths ${first} to ${this.deaths}, seed ${this.seed}: ${fault} (${dataDir})`));
    if (faults.length === 0) rmSync(dataDir, { recursive: true });
  }

  table(): string {
    return `random deaths (seed ${this.seed})`.padEnd(48) + ` ${this.deaths} died   ${this.faults.length} violations   ${this.messages} acknowledged messages`;
  }
}

/** Compares the time from a SIGKILL in mid-call to the completed turn with a bare start of a worker. */
export async function recoverySpeed(rounds: number): Promise<string> {
  const bare: number[] = [];
  const recovered: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const dataDir = dataFolder();
    const plan: WorkerPlan = { dataDir, sends: [{ session_id: 's', text: 'hang s 1', key: 'k1' }] };
    const first = new Life(plan);
    await first.line('hanging');
    const killedAt = performance.now();
    first.kill();
    const second = new Life({ dataDir, sends: [] });
    await second.ended;
    recovered.push(performance.now() - killedAt);
    const idle = new Life({ dataDir, sends: [] });
    await idle.ended;
    bare.push(performance.now() - idle.startedAt);
    rmSync(dataDir, { recursive: true });
  }
  const [slow, base] = [median(recovered), median(bare)];
  return `recovery: from SIGKILL in mid-call to the end of the turn ${slow.toFixed(0)} ms, bare start and end of a worker ${base.toFixed(0)} ms, ratio ${(slow / base).toFixed(2)}`;
}

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
