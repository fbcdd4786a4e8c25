import { errorMessage } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { Heartbeat } from '../processes/heartbeat.js';
import type { ProcessRegistry } from '../processes/registry.js';
import { within } from '../processes/within.js';
import type { SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { JobQueue, type QueueReport } from './job-queue.js';
import type { NewJob, WaitingJob } from './jobs.js';
import { type Lane, Lanes } from './lanes.js';
import { JobRunner } from './runner.js';

/** How often this process looks for jobs that others left behind or handed to it, in ms. */
const WATCH_MS = 500;

/**
 * The queue of the embedded runtime. A job is owned by the process that runs it, and is handed to it in memory right after
 * the commit; what a dead process owned, another takes over. In a queue with groups all jobs of a group belong to one
 * process, which runs them one after the other.
 */
export class SqliteQueue extends JobQueue {
  private readonly queues = new Map<string, Lanes>();
  private readonly runs = new Set<Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  /** Jobs that this process has stored and not yet put into its order of work. */
  private readonly onTheWay = new Set<number>();
  /** There once this process runs jobs. */
  private runner: JobRunner | undefined;
  private scope: 'all' | 'own' = 'all';
  private stopping = false;
  private watchTimer: NodeJS.Timeout | undefined;
  private readonly heartbeat: Heartbeat;
  private dataVersion = -1;
  /** Jobs up to this id that others gave to this process have been seen. */
  private seen = 0;

  constructor(
    private readonly db: SqliteConnection,
    writer: SqliteWriter,
    processes: ProcessRegistry,
    report: QueueReport,
  ) {
    super(db, writer, processes, report);
    this.heartbeat = new Heartbeat(writer, processes, report);
  }

  override async start(bus: Bus, scope: 'all' | 'own' = 'all'): Promise<void> {
    this.runner = new JobRunner(this.jobs, this.writer, this.processes, bus, this.report);
    this.scope = scope;
    await this.writer.submit(() => this.processes.renew(Date.now(), true), 'queue-register');
    await this.takeOver();
    this.watch();
  }

  override async stop(graceMs: number, hurry?: AbortSignal): Promise<void> {
    if (this.stopping || this.runner === undefined) return;
    this.stopping = true;
    clearTimeout(this.watchTimer);
    for (const timer of this.timers) clearTimeout(timer);
    await within(Promise.allSettled(this.runs), graceMs, hurry);
    this.heartbeat.busy = false;
    this.runner.giveUp();
    await this.writer.submit(() => this.jobs.release(this.processes.owner), 'queue-release');
  }

  /** Jobs that run or wait in this process. */
  get load(): { running: number; waiting: number } {
    let running = 0;
    let lanes = 0;
    for (const queue of this.queues.values()) {
      running += queue.running;
      lanes += queue.size;
    }
    return { running, waiting: lanes - running };
  }

  /** Owner of the jobs that this process stores; null while it runs none, so that others take them. */
  private get owner(): string | null {
    return this.runner === undefined || this.stopping ? null : this.processes.owner;
  }

  protected override async put(make: () => readonly NewJob[], point: string): Promise<void> {
    try {
      this.accept(await this.writer.submit(() => this.store(make()), point));
    } catch (error) {
      this.onTheWay.clear(); // the ids may be given again
      throw error;
    }
  }

  /**
   * Inside a write transaction: stores jobs with their owners; returns what this process has to run now. A job of a
   * group goes to whoever has the group.
   */
  private store(jobs: readonly NewJob[]): WaitingJob[] {
    const now = Date.now();
    this.processes.renew(now);
    const self = this.owner;
    const mine: WaitingJob[] = [];
    for (const job of jobs) {
      const { queue, group_key: group } = job;
      const last = group === null ? undefined : this.jobs.lastInGroup(queue, group);
      const owner = last?.owner != null && !this.processes.isGone(last.owner, now) ? last.owner : self;
      const stored = this.jobs.insert(job, owner, now);
      if (owner === null || owner !== self) continue;
      const known = group === null ? 0 : this.lanes(queue).lastOf(group);
      if (group === null || last === undefined || (last.owner === self && (last.id <= known || this.onTheWay.has(last.id))))
        mine.push(stored);
      else {
        this.jobs.adopt(queue, group, self);
        mine.push(...this.jobs.inGroup(queue, group, known));
      }
      this.onTheWay.add(stored.id);
    }
    return mine;
  }

  private lanes(queue: string): Lanes {
    let lanes = this.queues.get(queue);
    if (lanes === undefined) {
      lanes = new Lanes();
      this.queues.set(queue, lanes);
    }
    return lanes;
  }

  /** Puts jobs of this process into the order of work, and runs what may run. */
  private accept(waiting: readonly WaitingJob[]): void {
    if (this.owner === null) return;
    for (const job of waiting) {
      this.onTheWay.delete(job.id);
      const lanes = this.lanes(job.queue);
      const lane = lanes.add(job);
      if (lane !== null) this.schedule(job.queue, lanes, lane);
    }
    for (const queue of new Set(waiting.map((job) => job.queue))) this.pump(queue);
  }

  /** Makes a lane ready, now or when its first job may run. */
  private schedule(queue: string, lanes: Lanes, lane: Lane): void {
    const delay = lane.notBefore - Date.now();
    if (delay <= 0) lanes.makeReady(lane);
    else {
      this.later(delay, () => {
        lanes.makeReady(lane);
        this.pump(queue);
      });
    }
  }

  private pump(queue: string): void {
    const lanes = this.lanes(queue);
    const settings = this.jobs.settings(queue);
    while (!this.stopping && lanes.running < (settings?.concurrency ?? 1)) {
      const next = lanes.next();
      if (next === null) break;
      const run = this.run(queue, lanes, next.lane, next.id)
        .catch((error: unknown) => this.report('a job could not be brought to its end', { queue, error: errorMessage(error) }))
        .finally(() => this.runs.delete(run));
      this.runs.add(run);
    }
    this.beat();
  }

  private async run(queue: string, lanes: Lanes, lane: Lane, id: number): Promise<void> {
    const job = this.jobs.owned(id, this.processes.owner);
    const retryAt = job === undefined || this.runner === undefined ? null : await this.runner.attempt(job);
    if (retryAt !== null) {
      lanes.pause(lane, retryAt);
      if (!this.stopping) this.schedule(queue, lanes, lane);
    } else if (lanes.advance(lane, id)) lanes.makeReady(lane);
    this.pump(queue);
  }

  private later(delayMs: number, run: () => void): void {
    const timer = setTimeout(
      () => {
        this.timers.delete(timer);
        if (!this.stopping) run();
      },
      Math.min(delayMs, 2 ** 31 - 1),
    );
    this.timers.add(timer);
  }

  /** Renews the lease while this process has jobs. */
  private beat(): void {
    this.heartbeat.busy = !this.stopping && [...this.queues.values()].some((lanes) => lanes.size > 0);
  }

  private watch(): void {
    if (this.stopping) return;
    this.watchTimer = setTimeout(() => {
      this.takeOver()
        .catch((error: unknown) => this.report('looking for jobs failed', { error: errorMessage(error) }))
        .finally(() => this.watch());
    }, WATCH_MS);
    this.watchTimer.unref();
  }

  /** Takes the jobs that nobody alive owns, and those that other processes gave to this one. */
  private async takeOver(): Promise<void> {
    const owner = this.processes.owner;
    if (this.scope === 'all') {
      for (const other of this.jobs.owners()) {
        if (other === owner || (other !== null && !this.processes.isGone(other, Date.now()))) continue;
        const claimed = await this.writer.submit(() => {
          this.processes.renew(Date.now());
          return other !== null && !this.processes.isGone(other, Date.now()) ? [] : this.jobs.claim(other, owner);
        }, 'queue-claim');
        this.accept(claimed);
      }
    }
    const version = this.db.pragma('data_version', { simple: true }) as number;
    if (version === this.dataVersion) return;
    this.dataVersion = version;
    const given = this.jobs.ownedSince(owner, this.seen);
    this.seen = given.at(-1)?.id ?? this.seen;
    this.accept(given);
  }
}
