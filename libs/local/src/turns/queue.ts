import { errorMessage, type TurnStepPayload } from '#libs/contracts';
import { isLive, type StepHandler, type StepOwner, type StepQueue } from '#libs/turn';
import { Heartbeat } from '../processes/heartbeat.js';
import type { ProcessRegistry } from '../processes/registry.js';
import { within } from '../processes/within.js';
import type { SqliteConnection, SqliteStatement, SqliteWriter } from '../sqlite/index.js';
import { recordOf, type TurnRow } from './rows.js';

/** How often this process looks for what other processes wrote, in ms: while it runs steps, and while it is idle. */
const WATCH_BUSY_MS = 100;
const WATCH_IDLE_MS = 500;
/** First pause before a step whose own error could not be stored is tried again, in ms; doubles up to the cap. */
const RETRY_MS = 500;
const RETRY_CAP_MS = 30_000;

export interface QueueOptions {
  /** Steps that run side by side. */
  concurrency: () => number;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

/**
 * The step queue of the embedded runtime. A queued step is a column of its turn's row, owned by the process that runs
 * it and handed to it in memory right after the commit. Steps whose owner is gone are taken over at start and later;
 * taking over raises the version of the row, so that a former owner that still lives can write nothing more.
 */
export class SqliteStepQueue implements StepQueue {
  protected handler: StepHandler | undefined;
  private scope: 'all' | 'own' = 'own';
  /** The step that waits in each session, in order of arrival; and the sessions whose step runs. */
  private readonly ready = new Map<string, { payload: TurnStepPayload; since: number }>();
  protected readonly running = new Map<string, Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly failures = new Map<string, number>();
  private readonly abortListeners = new Set<(sessionId: string) => void>();
  private watchTimer: NodeJS.Timeout | undefined;
  private readonly heartbeat: Heartbeat;
  private dataVersion = -1;
  protected stopping = false;
  private readonly selectOpen: SqliteStatement;
  protected readonly selectTurn: SqliteStatement;
  private readonly take: SqliteStatement;
  private readonly release: SqliteStatement;

  constructor(
    private readonly db: SqliteConnection,
    private readonly writer: SqliteWriter,
    protected readonly processes: ProcessRegistry,
    protected readonly options: QueueOptions,
  ) {
    this.heartbeat = new Heartbeat(writer, processes, options.report);
    this.selectOpen = db.prepare('SELECT * FROM turns WHERE job_step IS NOT NULL AND owner IS NOT ?');
    this.selectTurn = db.prepare('SELECT * FROM turns WHERE session_id = ?');
    this.take = db.prepare(
      'UPDATE turns SET owner = ?, version = version + 1, claims = claims + 1 WHERE session_id = ? AND version = ? AND owner IS ?',
    );
    this.release = db.prepare('UPDATE turns SET owner = NULL WHERE session_id = ? AND owner = ? AND job_step IS NOT NULL');
  }

  /** Owner of the steps that this process queues; null while it runs none, so that others take them. */
  get owner(): string | null {
    return this.handler === undefined || this.stopping ? null : this.processes.owner;
  }

  async start(handler: StepHandler, scope: 'all' | 'own'): Promise<void> {
    this.handler = handler;
    this.scope = scope;
    await this.writer.submit(() => {
      this.processes.renew(Date.now(), true);
      this.processes.prune(Date.now());
    }, 'register');
    await this.takeOver();
    this.watch();
  }

  /** Runs a step of this process after its commit. */
  handOver(payload: TurnStepPayload, notBefore = 0): void {
    if (this.owner === null) return;
    const delay = notBefore - Date.now();
    if (delay > 0) this.later(delay, payload);
    else {
      this.ready.set(payload.session_id, { payload, since: Date.now() }); // the newest commit of a session is the one that counts
      this.pump();
    }
  }

  async adopt(sessionId: string): Promise<boolean> {
    const row = this.selectTurn.get(sessionId) as TurnRow | undefined;
    return row !== undefined && row.job_step !== null && (await this.leftBehind(row));
  }

  ownerOf(sessionId: string): Promise<StepOwner> {
    const row = this.selectTurn.get(sessionId) as TurnRow | undefined;
    if (row === undefined || row.job_step === null || row.owner === null) return Promise.resolve('none');
    if (row.owner === this.processes.owner) return Promise.resolve('self');
    return Promise.resolve(this.processes.isGone(row.owner, Date.now()) ? 'gone' : 'other');
  }

  /** Others may take what this process has once `alongside` has settled too: whatever else of it ends at the same time. */
  async stop(graceMs: number, hurry?: AbortSignal, alongside?: Promise<void>): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    clearTimeout(this.watchTimer);
    this.heartbeat.busy = false;
    for (const timer of this.timers) clearTimeout(timer);
    await Promise.all([alongside, within(Promise.allSettled(this.running.values()), graceMs, hurry)]);
    const released = this.writer.submit(() => {
      for (const { session_id } of this.db.prepare('SELECT session_id FROM turns WHERE owner = ?').all(this.processes.owner) as TurnRow[]) {
        this.release.run(session_id, this.processes.owner);
      }
      this.processes.leave();
    }, 'release');
    // What cannot be released is taken over all the same, once this process is gone.
    await released.catch((error: unknown) =>
      this.options.report('the steps of this process could not be handed back', { error: errorMessage(error) }),
    );
  }

  onAbortRequested(listener: (sessionId: string) => void): () => void {
    this.abortListeners.add(listener);
    return () => this.abortListeners.delete(listener);
  }

  /** What this queue needs beside the database, by name; null when nothing. */
  get dependency(): { name: string; ping(): Promise<void> } | null {
    return null;
  }

  /** Steps that run or wait in this process, and how long the one that waits longest has waited, in ms. */
  get load(): { running: number; waiting: number; longest_wait_ms: number } {
    const now = Date.now();
    const waits = [...this.ready.values()].map(({ since }) => now - since);
    return { running: this.running.size, waiting: waits.length, longest_wait_ms: Math.max(0, ...waits) };
  }

  private pump(): void {
    while (!this.stopping && this.running.size < this.options.concurrency()) {
      const payload = this.nextReady();
      if (payload === undefined) break;
      this.ready.delete(payload.session_id);
      this.running.set(payload.session_id, this.run(payload));
    }
    this.beat();
  }

  /** The first step that waits and whose session is free. */
  private nextReady(): TurnStepPayload | undefined {
    for (const { payload } of this.ready.values()) if (!this.running.has(payload.session_id)) return payload;
    return undefined;
  }

  private async run(payload: TurnStepPayload): Promise<void> {
    try {
      await this.handler?.(payload);
      this.failures.delete(payload.session_id);
    } catch (error) {
      this.tryAgain(payload, error);
    } finally {
      this.running.delete(payload.session_id);
      this.pump();
    }
  }

  /** The step's own error could not be stored (say, the disk is full): it stays queued and is tried again. */
  private tryAgain(payload: TurnStepPayload, error: unknown): void {
    if (this.stopping) return;
    const count = (this.failures.get(payload.session_id) ?? 0) + 1;
    this.failures.set(payload.session_id, count);
    const delay = Math.min(RETRY_MS * 2 ** (count - 1), RETRY_CAP_MS);
    this.options.report('a step was cut off and is tried again', { ...payload, error: String(error), delay_ms: delay });
    this.later(delay, payload);
  }

  /** Hands a step over after a pause, unless its turn has gone on or ended meanwhile. */
  private later(delayMs: number, payload: TurnStepPayload): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (this.stopping) return;
      const row = this.selectTurn.get(payload.session_id) as TurnRow | undefined;
      const due = row?.turn_id === payload.turn_id && row.job_step === payload.step && row.owner === this.processes.owner;
      if (due) this.handOver(payload);
    }, delayMs);
    this.timers.add(timer);
  }

  /** Renews the lease while steps run. */
  protected beat(): void {
    this.heartbeat.busy = !this.stopping && this.running.size > 0;
  }

  /** Looks at the database when another process has written: for stops of running turns, and for steps left behind. */
  private watch(): void {
    if (this.stopping) return;
    const look = async (): Promise<void> => {
      const version = this.db.pragma('data_version', { simple: true }) as number;
      if (version !== this.dataVersion) {
        this.dataVersion = version;
        for (const sessionId of this.running.keys()) {
          const row = this.selectTurn.get(sessionId) as TurnRow | undefined;
          if (row !== undefined && recordOf(row).abort_requested) for (const listener of this.abortListeners) listener(sessionId);
        }
      }
      await this.takeOver();
    };
    const delay = this.running.size > 0 ? WATCH_BUSY_MS : WATCH_IDLE_MS;
    this.watchTimer = setTimeout(() => {
      look()
        .catch((error: unknown) => this.options.report('looking for steps failed', { error: String(error) }))
        .finally(() => this.watch());
    }, delay);
    if (this.running.size === 0 && this.scope === 'own') this.watchTimer.unref();
  }

  /** Claims the queued steps that nobody alive owns. */
  private async takeOver(): Promise<void> {
    if (this.scope !== 'all') return;
    for (const row of this.selectOpen.all(this.processes.owner) as TurnRow[]) await this.leftBehind(row);
  }

  /** A queued step that another process has, or nobody: takes it over unless its process lives. */
  protected async leftBehind(row: TurnRow): Promise<boolean> {
    const claimed = await this.claim(row);
    if (claimed && row.job_step !== null && isLive(recordOf(row))) {
      this.handOver({ session_id: row.session_id, turn_id: row.turn_id, step: row.job_step }, row.not_before);
    }
    return claimed;
  }

  /** Makes the queued step of a row this process's own; false when it is a living process's, or was claimed or changed meanwhile. */
  protected async claim(row: TurnRow): Promise<boolean> {
    const now = Date.now();
    if (row.owner !== null && !this.processes.isGone(row.owner, now)) return false;
    return await this.writer.submit(() => {
      this.processes.renew(now);
      return this.take.run(this.processes.owner, row.session_id, row.version, row.owner).changes === 1;
    }, 'claim');
  }
}
