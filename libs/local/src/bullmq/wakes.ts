import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { isNotConnectionError, type JobsOptions, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { errorMessage } from '#libs/contracts';
import { within } from '../processes/within.js';
import { connection } from './redis.js';

/** How long a connection may take to be closed in good order, in ms. */
const CLOSE_MS = 1_000;

export interface WakesOptions {
  /** Address of Redis. */
  url: string;
  dataDir: string;
  /** What the wakes are about. */
  kind: 'turn' | 'job';
  /** How long Redis waits for a process that was woken and gives no sign of life before it wakes another, in ms. */
  lockMs: number;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

/**
 * Wakes one of the worker processes on a data folder, through BullMQ. Redis may lose a wake, repeat it or be away: what there is
 * to do says the database, and who may do it decides a claim there.
 */
export class Wakes<T extends object> {
  private readonly queue: Queue;
  private readonly sending = new Set<Promise<unknown>>();
  private readonly handling = new Set<Promise<void>>();
  /** What listens, and the connection that it waits on. */
  private listening: { worker: Worker<T>; redis: Redis } | undefined;
  /** True while Redis does not take wakes. */
  private away = false;
  private closing = false;

  private constructor(
    private readonly name: string,
    private readonly redis: Redis,
    private readonly options: WakesOptions,
  ) {
    this.queue = new Queue(name, { connection: redis, skipWaitingForReady: true });
    this.queue.on('error', (error) => this.fault(error));
    redis.on('ready', () => this.found());
  }

  /** Connects to Redis, and waits until it is there. */
  static async open<T extends object>(options: WakesOptions): Promise<Wakes<T>> {
    const redis = connection(options.url, { patient: false });
    if (redis.status !== 'ready') await new Promise((resolve) => redis.once('ready', resolve));
    const folder = createHash('sha256').update(realpathSync(options.dataDir)).digest('hex').slice(0, 16);
    return new Wakes<T>(`harness-${options.kind}-${folder}`, redis, options);
  }

  /** From now on this process is woken: `handle` runs at most `concurrency` times at once; a wake whose `handle` fails is sent again. */
  start(handle: (wake: T) => Promise<void>, concurrency: number): void {
    const { url, lockMs } = this.options;
    const redis = connection(url, { patient: true });
    const worker = new Worker<T>(this.name, ({ data }) => this.handle(handle(data)), {
      connection: redis,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // A wake that stalls again and again is no reason to drop it: the row fences whoever is too late.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
    });
    worker.on('error', (error) => this.fault(error));
    worker.on('failed', (wake, error) => this.trouble('what a process was woken for has failed', error, wake?.data));
    this.listening = { worker, redis };
  }

  /** Wakes a process; false when Redis is away. */
  async send(wake: T, options: JobsOptions): Promise<boolean> {
    const sent = this.queue.add('wake', wake, { ...options, removeOnComplete: true, removeOnFail: true });
    this.sending.add(sent);
    try {
      await sent;
      this.found();
      return true;
    } catch (error) {
      this.lost(error);
      return false;
    } finally {
      this.sending.delete(sent);
    }
  }

  /**
   * How Redis has a wake: `waiting` for a process, `taken` by one, which may have died since, or not at all. `none` also while Redis
   * is away.
   */
  async stateOf(id: string): Promise<'waiting' | 'taken' | 'none'> {
    const state = await this.queue.getJobState(id).catch(() => 'unknown' as const); // the next `send` tells that Redis is away
    if (state === 'unknown' || state === 'completed' || state === 'failed') return 'none';
    return state === 'active' ? 'taken' : 'waiting';
  }

  /** Throws while Redis is away. */
  async ping(): Promise<void> {
    await this.redis.ping();
  }

  /** Is woken no more; resolves when the handlers that run have ended. */
  async sleep(): Promise<void> {
    if (this.listening === undefined) return;
    const { worker, redis } = this.listening;
    // A connection that is closed between two tries to connect never says so, and an orderly close would wait for it.
    const closed = worker.close(redis.status !== 'ready');
    await Promise.allSettled(this.handling);
    await within(closed, CLOSE_MS);
    await Promise.allSettled(this.handling);
  }

  /** Ends the connections; handlers that still run are not waited for. */
  async close(): Promise<void> {
    this.closing = true;
    await within(Promise.allSettled(this.sending), CLOSE_MS);
    if (this.listening !== undefined) {
      const { worker, redis } = this.listening;
      await within(worker.disconnect(), CLOSE_MS);
      redis.disconnect();
    }
    this.redis.disconnect();
    await within(this.queue.close(), CLOSE_MS);
  }

  private async handle(handling: Promise<void>): Promise<void> {
    this.handling.add(handling);
    try {
      await handling;
    } finally {
      this.handling.delete(handling);
    }
  }

  private fault(error: Error): void {
    if (isNotConnectionError(error)) this.trouble('the queue in Redis has a fault', error);
    else this.lost(error);
  }

  private found(): void {
    if (this.away && !this.closing) this.options.report('Redis is back', { about: this.options.kind });
    this.away = false;
  }

  /** Said once, until Redis is there again. */
  private lost(error: unknown): void {
    if (!this.away) this.trouble('Redis is away: this process runs what it finds by itself', error);
    this.away = true;
  }

  private trouble(message: string, error: unknown, about: object = {}): void {
    if (!this.closing) this.options.report(message, { about: this.options.kind, ...about, error: errorMessage(error) });
  }
}
