import type { JobRow } from '../queue/index.js';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';

/** A job that waits, that nobody has, and that no job of its group comes before. */
const FREE = `FROM jobs WHERE queue = @queue AND dead = 0 AND owner IS NULL AND not_before <= @now AND NOT EXISTS (
  SELECT 1 FROM jobs earlier
  WHERE earlier.queue = jobs.queue AND earlier.group_key = jobs.group_key AND earlier.dead = 0 AND earlier.id < jobs.id)`;

/** Which stored jobs may run now, and who has them. Methods are synchronous; those that write run inside a transaction of the writer. */
export class JobClaims {
  private readonly countBusy: SqliteStatement;
  private readonly countFree: SqliteStatement;
  private readonly firstFree: SqliteStatement;
  private readonly setOwner: SqliteStatement;
  private readonly releaseGroup: SqliteStatement;
  private readonly waiting: SqliteStatement;

  constructor(db: SqliteConnection) {
    this.countBusy = db
      .prepare(
        `SELECT count(DISTINCT CASE WHEN group_key IS NULL THEN '#' || id ELSE '=' || group_key END)
         FROM jobs INDEXED BY jobs_by_owner WHERE queue = ? AND dead = 0 AND owner IS NOT NULL`,
      )
      .pluck();
    this.countFree = db.prepare(`SELECT count(*) FROM (SELECT 1 ${FREE} LIMIT @limit)`).pluck();
    this.firstFree = db.prepare(`SELECT id ${FREE} ORDER BY id LIMIT 1`).pluck();
    this.setOwner = db.prepare('UPDATE jobs SET owner = ? WHERE id = ? RETURNING *');
    this.releaseGroup = db.prepare(
      `UPDATE jobs INDEXED BY jobs_by_owner SET owner = NULL
       WHERE owner = @owner AND dead = 0 AND (id = @id OR (queue = @queue AND group_key = @group_key))`,
    );
    this.waiting = db.prepare('SELECT DISTINCT queue FROM jobs WHERE dead = 0 AND owner IS NULL').pluck();
  }

  /** Jobs of a queue that could begin now, where `concurrency` jobs of it may run at once; at most `limit`. */
  startable(queue: string, concurrency: number, now: number, limit = concurrency): number {
    const places = concurrency - (this.countBusy.get(queue) as number);
    return places <= 0 ? 0 : (this.countFree.get({ queue, now, limit: Math.min(places, limit) }) as number);
  }

  /** The job that has waited longest of those that nobody has and whose turn it is; null when there is none. */
  first(queue: string, now: number): number | null {
    return (this.firstFree.get({ queue, now }) as number | undefined) ?? null;
  }

  take(id: number, owner: string): JobRow {
    return this.setOwner.get(owner, id) as JobRow;
  }

  /** Gives up a job, and what others have put behind it in its group. */
  letGo({ id, queue, group_key }: JobRow, owner: string): void {
    this.releaseGroup.run({ id, queue, group_key, owner });
  }

  /** Queues with jobs that nobody has. */
  queues(): string[] {
    return this.waiting.all() as string[];
  }
}
