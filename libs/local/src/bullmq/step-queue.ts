import { errorMessage, type TurnStepPayload } from '#libs/contracts';
import { isLive, type StepHandler } from '#libs/turn';
import type { ProcessRegistry } from '../processes/registry.js';
import { within } from '../processes/within.js';
import type { SqliteConnection, SqliteStatement, SqliteWriter } from '../sqlite/index.js';
import { type QueueOptions, SqliteStepQueue } from '../turns/queue.js';
import { recordOf, type TurnRow } from '../turns/rows.js';
import type { Wakes } from './wakes.js';

/** Tries of a step whose own error could not be stored, and the first pause between them, in ms. */
const ATTEMPTS = 8;
const BACKOFF_MS = 500;
/** A queued step that no wake speaks of is found within this time, in ms. */
const RECOVER_MS = 1_000;

/** Look at this session: the step itself is in the turn's row. */
export interface StepWake {
  session_id: string;
}

/**
 * The step queue of several worker processes on one data folder. The row of a turn says which step is queued; a wake in Redis
 * only has a process claim the row. So Redis may lose a wake, repeat it, or be away: a step runs once all the same, in order
 * within its session, and one that no wake speaks of is found by looking at the rows.
 */
export class SharedStepQueue extends SqliteStepQueue {
  private readonly selectQueued: SqliteStatement;
  private recovery: NodeJS.Timeout | undefined;
  /** Takes no more steps, while running ones end. */
  private leaving = false;

  constructor(
    database: SqliteConnection,
    writer: SqliteWriter,
    processes: ProcessRegistry,
    private readonly wakes: Wakes<StepWake>,
    options: QueueOptions,
  ) {
    super(database, writer, processes, options);
    this.selectQueued = database.prepare('SELECT * FROM turns WHERE job_step IS NOT NULL');
  }

  /** Nobody's: any process may claim what this one queues. */
  override get owner(): null {
    return null;
  }

  override async start(handler: StepHandler, scope: 'all' | 'own'): Promise<void> {
    await super.start(handler, scope);
    this.wakes.start(({ session_id }) => this.wake(session_id), this.options.concurrency());
    this.recover();
  }

  override handOver({ session_id, turn_id, step }: TurnStepPayload, notBefore = 0): void {
    if (this.stopping) return;
    const row = this.selectTurn.get(session_id) as TurnRow | undefined;
    if (row?.turn_id === turn_id && row.job_step === step) void this.add(row, idOf(row), notBefore);
  }

  override async stop(graceMs: number, hurry?: AbortSignal, alongside?: Promise<void>): Promise<void> {
    this.leaving = true;
    clearTimeout(this.recovery);
    // What still runs then is fenced: whoever claims it next raises its version.
    const idle = Promise.all([this.wakes.sleep(), Promise.allSettled(this.running.values())]);
    await Promise.all([alongside, within(idle, graceMs, hurry)]);
    await super.stop(0);
    // Others go on at once; without it they find what is left by themselves.
    await this.addForgotten().catch((error: unknown) =>
      this.options.report('nobody is woken for what is left', { error: errorMessage(error) }),
    );
    await this.wakes.close();
  }

  override get dependency(): { name: string; ping(): Promise<void> } {
    return { name: 'redis', ping: () => this.wakes.ping() };
  }

  /** A step of a process that is gone goes to whoever is woken first; one of nobody has its wake already, or is found by `recover`. */
  protected override async leftBehind(row: TurnRow): Promise<boolean> {
    const isLeft = row.owner !== null && this.processes.isGone(row.owner, Date.now());
    if (isLeft) await this.add(row, idOf(row));
    return isLeft;
  }

  /** Wakes a process for the step of a row; a wake that Redis has already under this id is not sent again. */
  private async add({ session_id, not_before }: TurnRow, jobId: string, notBefore = not_before): Promise<void> {
    const delay = Math.max(0, notBefore - Date.now());
    const backoff = { type: 'exponential' as const, delay: BACKOFF_MS };
    const isSent = await this.wakes.send({ session_id }, { jobId, delay, attempts: ATTEMPTS, backoff });
    if (!isSent && delay === 0 && !this.leaving && this.running.size < this.options.concurrency()) await this.runHere(session_id);
  }

  /** Without Redis nobody is woken, so whoever finds a step runs it. */
  private async runHere(sessionId: string): Promise<void> {
    try {
      await this.wake(sessionId);
    } catch (error) {
      this.options.report('a step could not be stored', { session_id: sessionId, error: errorMessage(error) });
    }
  }

  private async wake(sessionId: string): Promise<void> {
    const row = this.selectTurn.get(sessionId) as TurnRow | undefined;
    if (row === undefined || row.job_step === null || !isLive(recordOf(row)) || this.stopping || this.handler === undefined) return;
    const mine = row.owner === this.processes.owner;
    if (this.running.has(row.session_id) || !(mine || (await this.claim(row)))) return;
    const run = this.handler({ session_id: row.session_id, turn_id: row.turn_id, step: row.job_step });
    this.running.set(row.session_id, run);
    this.beat();
    try {
      await run;
    } finally {
      this.running.delete(row.session_id);
      this.beat();
    }
  }

  /** Finds queued steps that no wake speaks of: of processes that died between commit and wake, or wake and claim, and of a Redis that lost them. */
  private recover(): void {
    if (this.stopping) return;
    this.recovery = setTimeout(() => {
      this.addForgotten()
        .catch((error: unknown) => this.options.report('looking for steps failed', { error: errorMessage(error) }))
        .finally(() => this.recover());
    }, RECOVER_MS);
    this.recovery.unref();
  }

  private async addForgotten(): Promise<void> {
    const now = Date.now();
    const rows = (this.selectQueued.all() as TurnRow[]).filter(({ owner, session_id }) =>
      owner === this.processes.owner ? !this.running.has(session_id) : owner === null || this.processes.isGone(owner, now),
    );
    await Promise.all(rows.map((row) => this.addUnlessWaiting(row, now)));
  }

  /** Whoever has taken the wake of a step and not claimed the step may be dead, so that another wake is needed. */
  private async addUnlessWaiting(row: TurnRow, now: number): Promise<void> {
    const id = idOf(row);
    const state = await this.wakes.stateOf(id);
    if (state === 'none') await this.add(row, id);
    else if (state === 'taken') await this.add(row, `${id}-${Math.floor(now / RECOVER_MS)}`);
  }
}

/** The wake of a queued step. The version of the row is in it: each claim, and each time that the step is queued again, is another. */
const idOf = ({ turn_id, version }: TurnRow): string => `${turn_id}-${version}`;
