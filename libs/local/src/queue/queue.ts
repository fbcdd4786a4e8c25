import { randomUUID } from 'node:crypto';
import { errorMessage, type JsonValue } from '#libs/contracts';
import { type Bus, BusError, type QueueSink } from '#libs/iii';
import type { ProcessRegistry } from '../processes/registry.js';
import type { SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { groupOf, type QueueDefinition } from './definition.js';
import { type JobRow, JobTable, type NewJob, type WaitingJob } from './jobs.js';
import { type Lane, Lanes } from './lanes.js';
import { JobRunner, type QueueReport } from './runner.js';

/** How often this process looks for jobs that others left behind or handed to it, in ms. */
const WATCH_MS = 500;

/**
 * The queue of enqueue actions. A job is on disk before its receipt is given, is owned by the process that runs it, and
 * is handed to it in memory right after the commit. It runs at least once: what a dead process owned, another takes over.
 * In a queue with groups all jobs of a group belong to one process, which runs them one after the other.
 */
export class SqliteQueue implements QueueSink {
  private readonly jobs: JobTable;
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
  private heartbeat: NodeJS.Timeout | undefined;
  private dataVersion = -1;
  /** Jobs up to this id that others gave to this process have been seen. */
  private seen = 0;

  constructor(
    private readonly db: SqliteConnection,
    private readonly writer: SqliteWriter,
    private readonly processes: ProcessRegistry,
    private readonly report: QueueReport,
  ) {
    this.jobs = new JobTable(db);
  }

  /** Stores a job and returns its receipt id. Throws `enqueue_error` for an unknown queue or a payload without its group. */
  async enqueue(job: { queue: string; function_id: string; payload: JsonValue; metadata?: JsonValue }): Promise<string> {
    const settings = this.jobs.settings(job.queue);
    if (settings === undefined)
      throw new BusError('enqueue_error', `there is no queue ${job.queue}; define it with queue::define`, job.function_id);
    const stored: NewJob = { ...job, receipt: randomUUID(), group_key: groupOf(settings, job.queue, job.payload, job.function_id) };
    this.accept(await this.commit(() => this.store([stored]), 'enqueue'));
    return stored.receipt;
  }

  /** Starts running jobs: `all`, also what other processes left behind, or only this process's `own`. */
  async start(bus: Bus, scope: 'all' | 'own' = 'all'): Promise<void> {
    this.runner = new JobRunner(this.jobs, this.writer, this.processes, bus, this.report);
    this.scope = scope;
    await this.writer.submit(() => this.processes.renew(Date.now(), true), 'queue-register');
    await this.takeOver();
    this.watch();
  }

  /** Takes no more jobs, waits for running ones for at most `graceMs`, and leaves the rest to other processes. */
  async stop(graceMs: number): Promise<void> {
    if (this.stopping || this.runner === undefined) return;
    this.stopping = true;
    clearTimeout(this.watchTimer);
    for (const timer of this.timers) clearTimeout(timer);
    let limit: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      limit = setTimeout(resolve, graceMs);
    });
    await Promise.race([Promise.allSettled(this.runs), grace]);
    clearTimeout(limit);
    clearInterval(this.heartbeat);
    this.runner.giveUp();
    await this.writer.submit(() => this.jobs.release(this.processes.owner), 'queue-release');
  }

  /** Sets how a queue works; false when it was so already. */
  define(queue: string, definition: QueueDefinition): Promise<boolean> {
    return this.writer.submit(() => this.jobs.define(queue, definition), 'queue-define');
  }

  /** Dead jobs of a queue, the oldest first. */
  dead(queue: string, limit: number, offset: number): JobRow[] {
    return this.jobs.dead(queue, limit, offset);
  }

  /** Queues dead jobs anew, all or the one with this receipt, behind what waits. Returns how many. */
  async redrive(queue: string, receipt: string | null): Promise<number> {
    const { count, waiting } = await this.commit(() => {
      const rows = this.jobs.exhume(queue, receipt);
      const again = rows.map(
        (row): NewJob => ({
          ...row,
          payload: JSON.parse(row.payload) as JsonValue,
          metadata: row.metadata === null ? undefined : (JSON.parse(row.metadata) as JsonValue),
        }),
      );
      return { count: rows.length, waiting: this.store(again) };
    }, 'queue-redrive');
    this.accept(waiting);
    return count;
  }

  /** Removes the dead job with this receipt; false when there is none. */
  discard(queue: string, receipt: string): Promise<boolean> {
    return this.writer.submit(() => this.jobs.exhume(queue, receipt).length > 0, 'queue-discard');
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

  /** Runs a write that stores jobs. */
  private async commit<T>(work: () => T, point: string): Promise<T> {
    try {
      return await this.writer.submit(work, point);
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
        if (last.owner !== self) this.jobs.adopt(queue, group, self);
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
    const busy = [...this.queues.values()].some((lanes) => lanes.size > 0);
    if (!busy) {
      clearInterval(this.heartbeat);
      this.heartbeat = undefined;
    } else if (this.heartbeat === undefined && !this.stopping) {
      this.heartbeat = setInterval(() => {
        this.writer
          .submit(() => this.processes.renew(Date.now()), 'heartbeat')
          .catch((error: unknown) => {
            this.report('the lease could not be renewed', { error: errorMessage(error) });
          });
      }, this.processes.heartbeatMs);
    }
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
