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
const PLACES_IN_A_FOLDER = 12;

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
async function live(
  chronicle: Chronicle,
  plan: WorkerPlan,
  failpoint?: string,
  lead?: (life: Life) => Promise<void>,
): Promise<{ life: Life; killed: boolean }> {
  const life = new Life(plan, failpoint);
  const leading = lead?.(life);
  const { signal } = await life.ended;
  await leading;
  chronicle.add(life);
  return { life, killed: signal === 'SIGKILL' };
}

interface Outcome {
  name: string;
  reached: boolean;
  faults: string[];
}

/** Dies once at each of some places, and comes back. */
export class PlacesRun {
  private readonly outcomes: Outcome[] = [];

  /** One process for each place, all in one data folder; then one worker that finishes what they left. */
  async firstLives(places: readonly Place[]): Promise<void> {
    for (let from = 0; from < places.length; from += PLACES_IN_A_FOLDER) {
      const group = places.slice(from, from + PLACES_IN_A_FOLDER).map((place, index) => planned(place, index));
      const dataDir = dataFolder();
      const chronicle = new Chronicle();
      const queue = [...group];
      const reached = new Set<Planned>();
      const lane = async (): Promise<void> => {
        for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
          const { life, killed } = await live(chronicle, { dataDir, role: 'client', sends: [next.send] }, next.place.failpoint);
          if (killed && !life.hung) reached.add(next);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      const unacknowledged = group.map(({ send }) => send).filter(({ key }) => !chronicle.acked.has(key));
      const faults = await finish(chronicle, dataDir, unacknowledged);
      const ofNobody = faults.filter((fault) => !group.some(({ send }) => fault.includes(send.session_id)));
      for (const [index, item] of group.entries()) {
        const own = faults.filter((fault) => fault.includes(item.send.session_id));
        this.outcomes.push({
          name: `first life: ${item.place.kind} ${item.place.failpoint}`,
          reached: reached.has(item),
          faults: index === 0 ? [...ofNobody, ...own] : own,
        });
      }
    }
  }

  /** A worker that takes over what a first process left in mid-call dies at the place; another one finishes it. */
  async takeovers(places: readonly Place[]): Promise<void> {
    for (const place of places) {
      const dataDir = dataFolder();
      const chronicle = new Chronicle();
      const { send } = planned(place, 0);
      const first = await live(chronicle, { dataDir, role: 'client', sends: [send] }, 'dispatch:after#1');
      const second = await live(chronicle, { dataDir, role: 'worker', sends: [] }, place.failpoint);
      const reached = first.killed && second.killed && !first.life.hung && !second.life.hung;
      this.outcomes.push({ name: `takeover: ${place.kind} ${place.failpoint}`, reached, faults: await finish(chronicle, dataDir, []) });
    }
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
    const rows = this.outcomes.map(
      ({ name, reached, faults }) => `${name.padEnd(48)} ${reached ? 'died' : 'NOT REACHED'}   ${faults.length} violations`,
    );
    return rows.sort().join('\n');
  }
}

interface Planned {
  place: Place;
  send: PlannedSend;
}

function planned(place: Place, index: number): Planned {
  const session_id = `s${index}-${place.kind}`;
  return { place, send: { session_id, text: `${place.kind} ${session_id} 1`, key: `k-${session_id}` } };
}

/** The last life over a data folder, then the check; the folder stays when something is broken. */
async function finish(chronicle: Chronicle, dataDir: string, sends: PlannedSend[]): Promise<string[]> {
  const { life } = await live(chronicle, { dataDir, role: 'worker', sends });
  const rested = life.lines.some((line) => line.type === 'idle') && life.stderr === '';
  const faults = rested ? [] : [`the last life did not come to rest${life.hung ? ' (it hung)' : ''}: ${life.stderr.slice(-400)}`];
  faults.push(...checkDisk(dataDir, chronicle));
  if (faults.length === 0) rmSync(dataDir, { recursive: true });
  return faults.map((fault) => `${fault} (${dataDir})`);
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
      const { killed } = await live(chronicle, { dataDir, role: 'worker', sends: [], load }, undefined, async (life) => {
        await life.line('ready');
        await sleep(this.random() * 500);
        life.kill();
      });
      if (killed) this.deaths += 1;
    }
    chronicle.stopped.clear(); // sessions go on after their stops here
    const faults = await finish(chronicle, dataDir, []);
    this.messages += chronicle.acked.size;
    this.faults.push(...faults.map((fault) => `random deaths ${first} to ${this.deaths}, seed ${this.seed}: ${fault}`));
  }

  table(): string {
    return (
      `random deaths (seed ${this.seed})`.padEnd(48) +
      ` ${this.deaths} died   ${this.faults.length} violations   ${this.messages} acknowledged messages`
    );
  }
}

/** Compares the time from a SIGKILL in mid-call to the completed turn with a bare start of a worker. */
export async function recoverySpeed(rounds: number): Promise<string> {
  const bare: number[] = [];
  const recovered: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const dataDir = dataFolder();
    const plan: WorkerPlan = { dataDir, role: 'worker', sends: [{ session_id: 's', text: 'hang s 1', key: 'k1' }] };
    const first = new Life(plan);
    await first.line('hanging');
    const killedAt = performance.now();
    first.kill();
    const second = new Life({ dataDir, role: 'worker', sends: [] });
    await second.ended;
    recovered.push(performance.now() - killedAt);
    const idle = new Life({ dataDir, role: 'worker', sends: [] });
    await idle.ended;
    bare.push(performance.now() - idle.startedAt);
    rmSync(dataDir, { recursive: true });
  }
  const [slow, base] = [median(recovered), median(bare)];
  return `recovery: from SIGKILL in mid-call to the end of the turn ${slow.toFixed(0)} ms, bare start and end of a worker ${base.toFixed(0)} ms, ratio ${(slow / base).toFixed(2)}`;
}

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
