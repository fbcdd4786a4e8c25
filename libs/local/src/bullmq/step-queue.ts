import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { errorMessage, type TurnStepPayload } from '#libs/contracts';
import { isLive, type StepHandler } from '#libs/turn';
import type { ProcessRegistry } from '../processes/registry.js';
import { within } from '../processes/within.js';
import type { SqliteConnection, SqliteStatement, SqliteWriter } from '../sqlite/index.js';
import { type QueueOptions, SqliteStepQueue } from '../turns/queue.js';
import { recordOf, type TurnRow } from '../turns/rows.js';
import { connection } from './redis.js';

/** How long a job may go without a renewal of its lock before Redis gives it to another process, in ms. */
const LOCK_MS = 30_000;
/** Tries of a step whose own error could not be stored, and the first pause between them, in ms. */
const ATTEMPTS = 8;
const BACKOFF_MS = 500;
/** A queued step that no job speaks of is found within this time, in ms. */
const RECOVER_MS = 2_000;

/** What a job says: look at this session. The step itself is in the turn's row. */
interface Wake {
  session_id: string;
}

export interface SharedQueueOptions extends QueueOptions {
  /** Address of Redis. */
  url: string;
  /** A connection to it whose commands fail at once while it is away. Closed with the queue. */
  redis: Redis;
  dataDir: string;
}

/**
 * The step queue of several worker processes on one data folder. The row of a turn says which step is queued; a job in Redis
 * only wakes a process that then claims the row. So Redis may lose a job, repeat it, or be away: a step runs once all the same,
 * in order within its session, and one that no job speaks of is found by looking at the rows.
 */
export class SharedStepQueue extends SqliteStepQueue {
  private readonly name: string;
  private readonly redis: Redis;
  private readonly queue: Queue<Wake>;
  private readonly selectQueued: SqliteStatement;
  private worker: Worker<Wake> | undefined;
  private recovery: NodeJS.Timeout | undefined;
  /** True while Redis does not take jobs. */
  private alone = false;

  constructor(
    database: SqliteConnection,
    writer: SqliteWriter,
    processes: ProcessRegistry,
    private readonly shared: SharedQueueOptions,
  ) {
    super(database, writer, processes, shared);
    this.selectQueued = database.prepare('SELECT * FROM turns WHERE job_step IS NOT NULL');
    this.name = `harness-turn-${createHash('sha256').update(realpathSync(shared.dataDir)).digest('hex').slice(0, 16)}`;
    this.redis = shared.redis;
    this.queue = new Queue<Wake>(this.name, { connection: this.redis, skipWaitingForReady: true });
    this.queue.on('error', (error) => this.trouble('the queue in Redis has a fault', error));
  }

  /** Nobody's: any process may claim what this one queues. */
  override get owner(): null {
    return null;
  }

  override async start(handler: StepHandler, scope: 'all' | 'own'): Promise<void> {
    await super.start(handler, scope);
    const { url, concurrency } = this.shared;
    this.worker = new Worker<Wake>(this.name, ({ data }) => this.wake(data.session_id), {
      connection: connection(url, { patient: true }),
      concurrency: concurrency(),
      lockDuration: LOCK_MS,
      // A job that stalls again and again is no reason to drop its step: the row's version fences whoever is too late.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
    });
    this.worker.on('error', (error) => this.trouble('the worker of the queue in Redis has a fault', error));
    this.redis.on('ready', () => {
      this.alone = false;
    });
    this.worker.on('failed', (job, error) => this.trouble('a step could not be stored', error, job?.data));
    this.recover();
  }

  override handOver({ session_id, turn_id, step }: TurnStepPayload, notBefore = 0): void {
    if (this.stopping) return;
    const row = this.selectTurn.get(session_id) as TurnRow | undefined;
    if (row?.turn_id === turn_id && row.job_step === step) this.add(row, notBefore);
  }

  override async stop(graceMs: number, hurry?: AbortSignal): Promise<void> {
    clearTimeout(this.recovery);
    const { worker } = this;
    if (worker !== undefined) {
      const closed = worker.close().catch((error: unknown) => this.trouble('the worker of the queue in Redis could not be closed', error));
      await within(Promise.all([closed, Promise.allSettled(this.running.values())]), graceMs, hurry);
      if (this.running.size > 0) await worker.disconnect(); // what still runs is fenced: whoever claims it next raises its version
    }
    await super.stop(0);
    await this.queue.close().catch((error: unknown) => this.trouble('the queue in Redis could not be closed', error));
    this.redis.disconnect();
  }

  override get dependency(): { name: string; ping(): Promise<void> } {
    return {
      name: 'redis',
      ping: async () => {
        await this.redis.ping();
      },
    };
  }

  /** A step of a process that is gone goes to whoever is woken first; one of nobody has its job already, or is found by `recover`. */
  protected override leftBehind(row: TurnRow): Promise<boolean> {
    const isLeft = row.owner !== null && this.processes.isGone(row.owner, Date.now());
    if (isLeft) this.add(row, row.not_before);
    return Promise.resolve(isLeft);
  }

  /** Wakes a process for the step of a row. The id of the job has the row's version in it: the same step again is the same job. */
  private add({ session_id, turn_id, version }: TurnRow, notBefore: number): void {
    const delay = Math.max(0, notBefore - Date.now());
    const backoff = { type: 'exponential' as const, delay: BACKOFF_MS };
    const options = { jobId: `${turn_id}-${version}`, delay, attempts: ATTEMPTS, backoff, removeOnComplete: true, removeOnFail: true };
    this.queue.add('wake', { session_id }, options).catch((error: unknown) => {
      if (this.stopping) return;
      if (!this.alone) this.trouble('Redis is away: this process runs what it finds by itself', error);
      this.alone = true;
      if (delay === 0 && this.running.size < this.shared.concurrency()) void this.runHere(session_id);
    });
  }

  /** Without Redis nobody is woken, so whoever finds a step runs it. */
  private async runHere(sessionId: string): Promise<void> {
    try {
      await this.wake(sessionId);
    } catch (error) {
      this.trouble('a step could not be stored', error, { session_id: sessionId });
    }
  }

  private async wake(sessionId: string): Promise<void> {
    const row = this.selectTurn.get(sessionId) as TurnRow | undefined;
    if (row === undefined || row.job_step === null || !isLive(recordOf(row)) || this.stopping) return;
    const mine = row.owner === this.processes.owner;
    if (this.running.has(row.session_id) || !(mine || (await this.claim(row)))) return;
    const run = this.handler?.({ session_id: row.session_id, turn_id: row.turn_id, step: row.job_step }) ?? Promise.resolve();
    this.running.set(row.session_id, run);
    this.beat();
    try {
      await run;
    } finally {
      this.running.delete(row.session_id);
      this.beat();
    }
  }

  /**
   * Finds queued steps that no job speaks of: of processes that died between commit and job, and of a Redis that lost them. Those of
   * processes that are gone are found by `leftBehind`.
   */
  private recover(): void {
    if (this.stopping) return;
    this.recovery = setTimeout(() => {
      try {
        for (const row of this.selectQueued.all() as TurnRow[]) {
          const idle = row.owner === this.processes.owner && !this.running.has(row.session_id);
          if (idle || row.owner === null) this.add(row, row.not_before);
        }
      } catch (error) {
        this.trouble('looking for steps failed', error);
      }
      this.recover();
    }, RECOVER_MS);
    this.recovery.unref();
  }

  private trouble(message: string, error: unknown, about: object = {}): void {
    this.shared.report(message, { ...about, error: errorMessage(error) });
  }
}
