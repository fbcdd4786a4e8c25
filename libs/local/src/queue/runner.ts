import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, type JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { ProcessRegistry } from '../processes/registry.js';
import type { SqliteWriter } from '../sqlite/index.js';
import { backoffOf } from './definition.js';
import type { QueueReport } from './job-queue.js';
import type { JobRow, JobTable } from './jobs.js';

/** First pause before an outcome that could not be stored is stored again, in ms; doubles up to the cap. */
const STORE_RETRY_MS = 500;
const STORE_RETRY_CAP_MS = 30_000;
/** How much of an error is kept with a job, in characters. */
const MAX_ERROR_CHARS = 2_000;

/** Calls the functions of jobs and stores how that ended. */
export class JobRunner {
  private readonly stopped = new AbortController();

  constructor(
    private readonly jobs: JobTable,
    private readonly writer: SqliteWriter,
    private readonly processes: ProcessRegistry,
    private readonly bus: Bus,
    private readonly report: QueueReport,
  ) {}

  /** Ends the tries to store outcomes: other processes run those jobs again. */
  giveUp(): void {
    this.stopped.abort();
  }

  /** One try of a job, with its outcome stored, and `also` in the same commit. Returns when to try again; null when the job is over. */
  async attempt(job: JobRow, also: () => void = () => undefined): Promise<number | null> {
    const { id, function_id, queue } = job;
    const owner = this.processes.owner;
    const settings = this.jobs.settings(queue);
    const payload = JSON.parse(job.payload) as JsonValue;
    const metadata = job.metadata === null ? {} : { metadata: JSON.parse(job.metadata) as JsonValue };
    try {
      if (settings === undefined) throw new Error(`queue ${queue} is not there any more`);
      await this.bus.trigger({ function_id, payload, timeoutMs: settings.timeoutMs, ...metadata });
    } catch (error) {
      const attempts = job.attempts + 1;
      const dead = settings === undefined || attempts > settings.maxRetries;
      const not_before = dead ? 0 : Date.now() + backoffOf(settings, attempts);
      const last_error = errorMessage(error).slice(0, MAX_ERROR_CHARS);
      await this.settle(() => {
        this.jobs.fail(id, owner, { attempts, not_before, last_error, dead });
        also();
      });
      if (dead) this.report('a job is dead', { queue, function_id, message_id: job.receipt, error: last_error });
      return dead ? null : not_before;
    }
    await this.settle(() => {
      this.jobs.finish(id, owner);
      also();
    });
    return null;
  }

  /** Stores the outcome of a try; while the store cannot write, again and again rather than running the job anew. */
  private async settle(write: () => void): Promise<void> {
    for (let pause = STORE_RETRY_MS; ; pause = Math.min(pause * 2, STORE_RETRY_CAP_MS)) {
      try {
        await this.writer.submit(() => {
          this.processes.renew(Date.now());
          write();
        }, 'job');
        return;
      } catch (error) {
        if (this.stopped.signal.aborted) throw error;
        this.report('the outcome of a job could not be stored and is tried again', { error: errorMessage(error), delay_ms: pause });
        await sleep(pause, undefined, { signal: this.stopped.signal });
      }
    }
  }
}
