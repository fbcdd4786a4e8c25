import { setTimeout as sleep } from 'node:timers/promises';
import { checkAfterDeath } from './check.js';
import { Folder } from './folder.js';
import { inLanes } from './lanes.js';
import type { Life } from './life.js';
import { isKeyed, type PlannedSend } from './protocol.js';
import { seeded } from './random.js';
import { POINTS_OF_JOBS, POINTS_UNDER_LOAD } from './scenarios.js';

/** Deaths in one data folder: few, so that a violation is near its cause. */
const DEATHS_IN_A_FOLDER = 20;
const SESSIONS = 6;
/** Lines that a worker tells, two for each send, before it dies at random; and how much longer it may live, in ms. */
const LINES = 16;
const MORE_MS = 30;
/** The same when it should die at a durable write before. */
const LINES_TO_POINT = 40;
/** When it dies before it has opened its store, in ms. */
const EARLY_MS = 400;
/** Sends of earlier lives that each life makes again. */
const REPEATS = 3;

/** Dies under load, at random moments and at durable writes of random sessions, many times over each data folder. */
export class RandomRun {
  readonly faults: string[] = [];
  deaths = 0;
  /** Of these, those at a durable write. */
  atPoints = 0;
  private messages = 0;
  private jobs = 0;
  private folders = 0;

  constructor(
    private readonly seed: number,
    private readonly lanes: number,
    /** Workers that share each folder by a Redis; otherwise each is alone in it, or with one other. */
    private readonly shared: { workers: number; redisUrl: string } | null,
    private readonly progress: (line: string) => void = () => undefined,
  ) {}

  /** Ends early at the first violation, or once `isLate`. */
  async run(deaths: number, isLate: () => boolean): Promise<void> {
    const wanted = Array.from({ length: Math.ceil(deaths / DEATHS_IN_A_FOLDER) }, (_, index) =>
      Math.min(DEATHS_IN_A_FOLDER, deaths - index * DEATHS_IN_A_FOLDER),
    );
    await inLanes(wanted.entries(), this.lanes, async ([index, count]) => {
      if (this.faults.length === 0 && !isLate()) await this.folder(index, count, isLate);
    });
  }

  table(): string {
    return `random deaths (seed ${this.seed}): ${this.line()}`;
  }

  private line(): string {
    return `${this.deaths} died (${this.atPoints} at durable writes) in ${this.folders} folders   ${this.faults.length} violations   ${this.messages} acknowledged messages${this.shared === null ? '' : `   ${this.jobs} jobs`}`;
  }

  /** In every third folder two processes work at the same time, unless it is shared by more. */
  private async folder(index: number, deaths: number, isLate: () => boolean): Promise<void> {
    const folder = new Folder(this.shared?.redisUrl);
    const random = seeded(this.seed * 1_000_003 + index);
    const from = this.deaths;
    const found: string[] = [];
    const numbers = Array.from({ length: deaths }, (_, n) => n);
    await inLanes(numbers, this.shared?.workers ?? (index % 3 === 2 ? 2 : 1), async (n) => {
      if (found.length > 0 || isLate()) return;
      await this.life(folder, index * DEATHS_IN_A_FOLDER + n, random);
      found.push(...checkAfterDeath(folder.dataDir, folder).map((fault) => `${fault} (after death ${n}, ${folder.dataDir})`));
    });
    folder.stopped.clear(); // sessions go on after their stops here
    if (found.length === 0) found.push(...(await folder.finish()));
    this.messages += folder.acked.size;
    this.jobs += folder.enqueued.length;
    this.folders += 1;
    this.faults.push(...found.map((fault) => `folder ${index}, deaths ${from} to ${this.deaths}, seed ${this.seed}: ${fault}`));
    if (this.folders % 10 === 0) this.progress(this.line());
  }

  /** Half of the lives end at a durable write, if they come to it in time; the others at any moment, some before they have opened the store. */
  private async life(folder: Folder, number: number, random: () => number): Promise<void> {
    const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)];
    const points = this.shared === null ? POINTS_UNDER_LOAD : [...POINTS_UNDER_LOAD, ...POINTS_OF_JOBS];
    const failpoint = random() < 0.5 ? `${pick(points)}#${1 + Math.floor(random() * 4)}` : undefined;
    const early = random() < 0.04 ? random() * EARLY_MS : undefined;
    const lines = failpoint === undefined ? Math.floor(random() * LINES) : LINES_TO_POINT;
    const more = random() * MORE_MS;
    const keyed = folder.tried.filter(({ text, keyless }) => keyless !== true && isKeyed(text));
    const repeats = Array.from({ length: REPEATS }, () => pick(keyed)).filter((send): send is PlannedSend => send !== undefined);
    let byItself = false;
    const lead = async (life: Life): Promise<void> => {
      if (early === undefined) await life.linesAfter('opened', lines);
      byItself = await Promise.race([life.ended.then(() => true), sleep(early ?? more).then(() => false)]);
      life.kill();
    };
    const jobs = this.shared === null ? {} : ({ jobs: true } as const);
    const load = { sessions: SESSIONS, life: number, seed: this.seed, repeats, ...jobs };
    const { life, killed } = await folder.live({ role: 'worker', sends: [], load }, { failpoint, lead });
    if (!killed) this.faults.push(`life ${number} ended by itself: ${life.stderr.slice(0, 600)} (${folder.dataDir})`);
    else if (life.stderr !== '') this.faults.push(`life ${number} complained: ${life.stderr.slice(0, 600)} (${folder.dataDir})`);
    if (!killed) return;
    this.deaths += 1;
    if (byItself && failpoint !== undefined) this.atPoints += 1;
  }
}
