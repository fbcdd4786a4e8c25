import { errorMessage } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { Heartbeat } from '../processes/heartbeat.js';
import type { ProcessRegistry } from '../processes/registry.js';
import { within } from '../processes/within.js';
import { JobQueue, type JobRow, JobRunner, type NewJob, type QueueReport } from '../queue/index.js';
import type { SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { JobClaims } from './claims.js';
import type { Wakes } from './wakes.js';

/** Claims that one process makes at once, which then share a commit. */
const CLAIMS_AT_ONCE = 16;
/** Jobs that a process runs in a row before others may have its place. */
const IN_A_ROW = 8;
/** A job that no wake speaks of is found within this time, in ms. */
const RECOVER_MS = 1_000;

/** Look for a job of this queue: which one says the database. */
export interface JobWake {
  queue: string;
}

/**
 * The queue of enqueue actions of several worker processes on one data folder. A stored job belongs to nobody until it runs. Each
 * commit after which a job could begin sends a wake; whoever is woken claims the job that has waited longest, as long as fewer jobs
 * of the queue run, in all processes, than may. A wake ends with the claim, so Redis holds nothing that matters.
 */
export class SharedJobQueue extends JobQueue {
  private readonly claims: JobClaims;
  private readonly runs = new Set<Promise<void>>();
  /** The jobs that run in this process. */
  private readonly running = new Set<number>();
  private readonly heartbeat: Heartbeat;
  private runner: JobRunner | undefined;
  private recovery: NodeJS.Timeout | undefined;
  private stopping = false;

  constructor(
    db: SqliteConnection,
    writer: SqliteWriter,
    processes: ProcessRegistry,
    private readonly wakes: Wakes<JobWake>,
    report: QueueReport,
  ) {
    super(db, writer, processes, report);
    this.claims = new JobClaims(db);
    this.heartbeat = new Heartbeat(writer, processes, report);
  }

  override async start(bus: Bus): Promise<void> {
    this.runner = new JobRunner(this.jobs, this.writer, this.processes, bus, this.report);
    await this.writer.submit(() => this.processes.renew(Date.now(), true), 'queue-register');
    this.wakes.start(({ queue }) => this.claim(queue), CLAIMS_AT_ONCE);
    await this.takeOver();
    this.watch();
  }

  override async stop(graceMs: number, hurry?: AbortSignal): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    clearTimeout(this.recovery);
    await within(
      this.wakes.sleep().then(() => Promise.allSettled(this.runs)),
      graceMs,
      hurry,
    );
    this.heartbeat.busy = false;
    this.runner?.giveUp();
    await this.writer.submit(() => this.jobs.release(this.processes.owner), 'queue-release');
    this.wakeForAll(); // others go on at once
    await this.wakes.close();
  }

  protected override async put(make: () => readonly NewJob[], point: string): Promise<void> {
    const wanted = await this.writer.submit(() => {
      const now = Date.now();
      this.processes.renew(now);
      const heads = new Map<string, number>();
      for (const job of make()) {
        const { queue, group_key: group } = job;
        const isHead = group === null || this.jobs.lastInGroup(queue, group) === undefined;
        this.jobs.insert(job, null, now);
        if (isHead) heads.set(queue, (heads.get(queue) ?? 0) + 1);
      }
      return [...heads].map(([queue, count]) => ({ queue, count: this.startable(queue, count) }));
    }, point);
    for (const { queue, count } of wanted) this.wake(queue, count);
  }

  private startable(queue: string, limit?: number): number {
    return this.claims.startable(queue, this.jobs.settings(queue)?.concurrency ?? 1, Date.now(), limit);
  }

  /** Wakes processes for `count` jobs; does it itself while Redis is away. */
  private wake(queue: string, count: number, delay = 0): void {
    for (let n = 0; n < count; n += 1) {
      const sent = this.wakes.send({ queue }, { delay }).then(async (isSent) => {
        if (!isSent && delay === 0) await this.claim(queue);
      });
      sent.catch((error: unknown) => this.report('a job could not be claimed', { queue, error: errorMessage(error) }));
    }
  }

  /** Claims a job of a queue, if one can begin, and lets it run. */
  private async claim(queue: string): Promise<void> {
    if (this.stopping || this.startable(queue, 1) === 0) return;
    const job = await this.writer.submit(() => this.next(queue), 'job-claim');
    if (job === null) return;
    const run = this.runInARow(job)
      .catch((error: unknown) => this.report('a job could not be brought to its end', { queue, error: errorMessage(error) }))
      .finally(() => {
        this.runs.delete(run);
        this.beat();
      });
    this.runs.add(run);
    this.beat();
  }

  /** Inside a write transaction: claims the job that has waited longest; null when none can begin. */
  private next(queue: string): JobRow | null {
    const now = Date.now();
    const first = this.stopping || this.startable(queue, 1) === 0 ? null : this.claims.first(queue, now);
    if (first === null || this.running.has(first)) return null; // a run of this process that was taken for gone has yet to end
    this.processes.renew(now);
    return this.claims.take(first, this.processes.owner);
  }

  /** Runs a job and those that come next, each claimed by the commit that ends the one before; then others may have the place. */
  private async runInARow(first: JobRow): Promise<void> {
    let job: JobRow | null = first;
    for (let left = IN_A_ROW; job !== null; left -= 1) job = await this.run(job, left > 1);
  }

  /** Runs a job; gives the next one, if this process is to `goOn` and there is one. */
  private async run(job: JobRow, goOn: boolean): Promise<JobRow | null> {
    const { id, queue } = job;
    const after: { next: JobRow | null; others: number } = { next: null, others: 0 };
    this.running.add(id);
    try {
      const retryAt = await this.runner?.attempt(job, () => {
        this.claims.letGo(job, this.processes.owner);
        after.next = goOn ? this.next(queue) : null;
        after.others = after.next === null ? this.startable(queue, 1) : 0;
      });
      if (retryAt != null) this.wake(queue, 1, Math.max(1, retryAt - Date.now()));
    } finally {
      this.running.delete(id);
    }
    this.wake(queue, after.others);
    return after.next;
  }

  private beat(): void {
    this.heartbeat.busy = !this.stopping && this.runs.size > 0;
  }

  /** Finds jobs that no wake speaks of: of processes that died between commit and wake, and of a Redis that lost them. */
  private watch(): void {
    this.recovery = setTimeout(() => {
      this.takeOver()
        .catch((error: unknown) => this.report('looking for jobs failed', { error: errorMessage(error) }))
        .finally(() => {
          if (!this.stopping) this.watch();
        });
    }, RECOVER_MS);
    this.recovery.unref();
  }

  /** Frees the jobs of processes that are gone, and wakes for all that could begin. */
  private async takeOver(): Promise<void> {
    const isGone = (owner: string | null): owner is string => owner !== null && this.processes.isGone(owner, Date.now());
    if (this.jobs.owners().some(isGone))
      await this.writer.submit(() => {
        for (const owner of this.jobs.owners()) if (isGone(owner)) this.jobs.release(owner);
      }, 'queue-claim');
    this.wakeForAll();
  }

  private wakeForAll(): void {
    for (const queue of this.claims.queues()) this.wake(queue, this.startable(queue));
  }
}
