import { failpoint } from '#libs/turn';
import type { SqliteConnection, SqliteStatement } from './database.js';
import { isBusy, storageError } from './storage-error.js';

interface Pending {
  work: () => unknown;
  point: string;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** How long a commit is tried again while other processes hold the lock, in ms. */
const LOCK_PATIENCE_MS = 30_000;

/**
 * The one way to write. Work that is submitted in the same moment shares one transaction (group commit), so that many
 * sessions pay for one flush to disk; work that comes alone goes at once. A piece of work must be synchronous and may
 * run again: when one piece of a group fails, the group is rolled back and each piece runs in a transaction of its own.
 */
export class SqliteWriter {
  private pending: Pending[] = [];
  private scheduled = false;
  private readonly begin: SqliteStatement;
  private readonly commit: SqliteStatement;
  private readonly rollback: SqliteStatement;
  private closed = false;
  private waitingSince: number | undefined;
  /** Durable commits so far, for measurements. */
  commits = 0;
  /** Told of each durable commit how long it took, in ms. */
  onCommit: ((ms: number) => void) | undefined;

  constructor(private readonly db: SqliteConnection) {
    this.begin = db.prepare('BEGIN IMMEDIATE');
    this.commit = db.prepare('COMMIT');
    this.rollback = db.prepare('ROLLBACK');
  }

  /**
   * Runs `work` in a write transaction and resolves with its result once it is durable. `point` names the commit for
   * failpoints. Throws what `work` throws, or `harness/storage` when the store cannot write; then nothing was written.
   */
  submit<T>(work: () => T, point: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.pending.push({ work, point, resolve: resolve as (value: unknown) => void, reject });
      this.schedule();
    });
  }

  /** Writes what is pending and takes no more. */
  async close(): Promise<void> {
    while (this.pending.length > 0 || this.scheduled) await new Promise((resolve) => setImmediate(resolve));
    this.closed = true;
  }

  private schedule(delayMs = 0): void {
    if (this.scheduled) return;
    this.scheduled = true;
    if (delayMs > 0) setTimeout(this.flush, delayMs);
    else setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.scheduled = false;
    if (this.pending.length === 0) return;
    try {
      if (this.closed) throw new Error('the store is closed');
      if (!this.lock()) {
        this.schedule(1 + Math.random() * 10);
        return;
      }
    } catch (error) {
      for (const item of this.take()) item.reject(storageError(error, this.db.name));
      return;
    }
    const group = this.take();
    if (this.runTogether(group)) return;
    for (const item of group) this.runAlone(item);
  };

  private take(): Pending[] {
    const group = this.pending;
    this.pending = [];
    return group;
  }

  /** Begins a write transaction; false while another process holds the lock and patience is left. */
  private lock(): boolean {
    try {
      this.begin.run();
      this.waitingSince = undefined;
      return true;
    } catch (error) {
      this.waitingSince ??= Date.now();
      if (isBusy(error) && Date.now() - this.waitingSince < LOCK_PATIENCE_MS) return false;
      this.waitingSince = undefined;
      throw error;
    }
  }

  /** Commits the whole group in the open transaction; false when a piece failed and all was rolled back. */
  private runTogether(group: Pending[]): boolean {
    for (const item of group) failpoint(`${item.point}:before`);
    const results: unknown[] = [];
    const startedAt = performance.now();
    try {
      for (const item of group) results.push(item.work());
      this.commit.run();
    } catch (error) {
      this.undo();
      if (group.length > 1) return false;
      group[0]?.reject(storageError(error, this.db.name));
      return true;
    }
    this.committed(startedAt);
    for (const item of group) failpoint(`${item.point}:after`);
    for (const [index, item] of group.entries()) item.resolve(results[index]);
    return true;
  }

  private runAlone(item: Pending): void {
    const startedAt = performance.now();
    try {
      this.begin.run();
      const result = item.work();
      this.commit.run();
      this.committed(startedAt);
      failpoint(`${item.point}:after`);
      item.resolve(result);
    } catch (error) {
      this.undo();
      if (isBusy(error) && !this.closed) {
        this.pending.push(item);
        this.schedule(1);
      } else item.reject(storageError(error, this.db.name));
    }
  }

  private committed(startedAt: number): void {
    this.commits += 1;
    this.onCommit?.(performance.now() - startedAt);
  }

  private undo(): void {
    if (this.db.inTransaction) this.rollback.run();
  }
}
