import { randomUUID } from 'node:crypto';
import type { JsonValue } from '#libs/contracts';
import { type Bus, BusError, type QueueSink } from '#libs/iii';
import type { ProcessRegistry } from '../processes/registry.js';
import type { SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { groupOf, type QueueDefinition } from './definition.js';
import { type JobRow, JobTable, type NewJob } from './jobs.js';

/** Told of what goes wrong where no caller waits. */
export type QueueReport = (message: string, context: { [key: string]: unknown }) => void;

/**
 * The queue of enqueue actions. A job is on disk before its receipt is given, runs at least once, in order within its group,
 * and is kept as dead when its tries are used up. Who runs it, and when, is up to the subclass.
 */
export abstract class JobQueue implements QueueSink {
  protected readonly jobs: JobTable;

  constructor(
    db: SqliteConnection,
    protected readonly writer: SqliteWriter,
    protected readonly processes: ProcessRegistry,
    protected readonly report: QueueReport,
  ) {
    this.jobs = new JobTable(db);
  }

  /** Starts running jobs: `all`, also what other processes left behind, or only this process's `own`. */
  abstract start(bus: Bus, scope?: 'all' | 'own'): Promise<void>;

  /** Takes no more jobs, waits for running ones for at most `graceMs` or until `hurry` is aborted, and leaves the rest to other processes. */
  abstract stop(graceMs: number, hurry?: AbortSignal): Promise<void>;

  /** Stores the jobs that `make` gives inside a write transaction, which `point` names, and has them run. */
  protected abstract put(make: () => readonly NewJob[], point: string): Promise<void>;

  /** Stores a job and returns its receipt id. Throws `enqueue_error` for an unknown queue or a payload without its group. */
  async enqueue(job: { queue: string; function_id: string; payload: JsonValue; metadata?: JsonValue }): Promise<string> {
    const settings = this.jobs.settings(job.queue);
    if (settings === undefined)
      throw new BusError('enqueue_error', `there is no queue ${job.queue}; define it with queue::define`, job.function_id);
    const stored: NewJob = { ...job, receipt: randomUUID(), group_key: groupOf(settings, job.queue, job.payload, job.function_id) };
    await this.put(() => [stored], 'enqueue');
    return stored.receipt;
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
    let count = 0;
    await this.put(() => {
      const rows = this.jobs.exhume(queue, receipt);
      count = rows.length;
      return rows.map((row) => ({
        ...row,
        payload: JSON.parse(row.payload) as JsonValue,
        metadata: row.metadata === null ? undefined : (JSON.parse(row.metadata) as JsonValue),
      }));
    }, 'queue-redrive');
    return count;
  }

  /** Removes the dead job with this receipt; false when there is none. */
  discard(queue: string, receipt: string): Promise<boolean> {
    return this.writer.submit(() => this.jobs.exhume(queue, receipt).length > 0, 'queue-discard');
  }
}
