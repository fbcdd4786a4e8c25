import type { JsonValue } from '#libs/contracts';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import { DEFAULT_DEFINITION, DEFAULT_QUEUE, type QueueDefinition, type QueueSettings, settingsOf } from './definition.js';

/** A job that waits: what the order of work needs to know of it. */
export interface WaitingJob {
  id: number;
  queue: string;
  group_key: string | null;
  not_before: number;
}

/** A stored job. `attempts` are those that failed; times are ms since the epoch. */
export interface JobRow extends WaitingJob {
  receipt: string;
  function_id: string;
  payload: string;
  metadata: string | null;
  attempts: number;
  owner: string | null;
  dead: number;
  last_error: string | null;
  created_at: number;
}

export interface NewJob {
  receipt: string;
  queue: string;
  group_key: string | null;
  function_id: string;
  payload: JsonValue;
  metadata?: JsonValue;
}

const WAITING = 'id, queue, group_key, not_before';

/**
 * The stored jobs and the definitions of queues. Methods are synchronous; those that write run inside a transaction of
 * the writer. The owner of a group's first open job has the group: nobody else runs a job of it.
 */
export class JobTable {
  private readonly selectDefinition: SqliteStatement;
  private readonly upsertDefinition: SqliteStatement;
  private readonly insertJob: SqliteStatement;
  private readonly selectGroup: SqliteStatement;
  private readonly adoptGroup: SqliteStatement;
  private readonly groupAfter: SqliteStatement;
  private readonly selectOwned: SqliteStatement;
  private readonly remove: SqliteStatement;
  private readonly updateFailed: SqliteStatement;
  private readonly nextOwner: SqliteStatement;
  private readonly unowned: SqliteStatement;
  private readonly claimOwner: SqliteStatement;
  private readonly ownedAfter: SqliteStatement;
  private readonly releaseAll: SqliteStatement;
  private readonly selectDead: SqliteStatement;
  private readonly takeDead: SqliteStatement;
  private readonly parsed = new Map<string, { text: string; settings: QueueSettings }>();

  constructor(db: SqliteConnection) {
    this.selectDefinition = db.prepare('SELECT config FROM queues WHERE name = ?').pluck();
    this.upsertDefinition = db.prepare(
      'INSERT INTO queues (name, config) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET config = excluded.config',
    );
    this.insertJob = db.prepare(
      `INSERT INTO jobs (receipt, queue, group_key, function_id, payload, metadata, owner, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING ${WAITING}`,
    );
    const ofGroup = 'FROM jobs WHERE queue = @queue AND group_key = @group AND dead = 0 ORDER BY id';
    this.selectGroup = db.prepare(`SELECT id, (SELECT owner ${ofGroup} LIMIT 1) AS owner ${ofGroup} DESC LIMIT 1`);
    this.adoptGroup = db.prepare('UPDATE jobs SET owner = ? WHERE queue = ? AND group_key = ? AND dead = 0');
    this.groupAfter = db.prepare(`SELECT ${WAITING} FROM jobs WHERE queue = ? AND group_key = ? AND dead = 0 AND id > ? ORDER BY id`);
    this.selectOwned = db.prepare('SELECT * FROM jobs WHERE id = ? AND owner = ? AND dead = 0');
    this.remove = db.prepare('DELETE FROM jobs WHERE id = ? AND owner = ? AND dead = 0');
    this.updateFailed = db.prepare(
      'UPDATE jobs SET attempts = ?, not_before = ?, last_error = ?, dead = ? WHERE id = ? AND owner = ? AND dead = 0',
    );
    this.nextOwner = db.prepare('SELECT min(owner) FROM jobs WHERE dead = 0 AND owner > ?').pluck();
    this.unowned = db.prepare('SELECT 1 FROM jobs WHERE dead = 0 AND owner IS NULL LIMIT 1').pluck();
    const head = 'SELECT owner FROM jobs head WHERE head.queue = jobs.queue AND head.group_key = jobs.group_key AND head.dead = 0';
    this.claimOwner = db.prepare(
      `UPDATE jobs SET owner = @owner WHERE dead = 0 AND owner IS @from
       AND (group_key IS NULL OR (${head} ORDER BY head.id LIMIT 1) IS @from) RETURNING ${WAITING}`,
    );
    this.ownedAfter = db.prepare(`SELECT ${WAITING} FROM jobs WHERE owner = ? AND dead = 0 AND id > ? ORDER BY id`);
    this.releaseAll = db.prepare('UPDATE jobs SET owner = NULL WHERE owner = ? AND dead = 0');
    this.selectDead = db.prepare('SELECT * FROM jobs WHERE queue = ? AND dead = 1 ORDER BY id LIMIT ? OFFSET ?');
    this.takeDead = db.prepare(
      'DELETE FROM jobs WHERE queue = @queue AND dead = 1 AND (@receipt IS NULL OR receipt = @receipt) RETURNING *',
    );
  }

  /** How a queue works; undefined when there is none of that name. */
  settings(queue: string): QueueSettings | undefined {
    const text =
      (this.selectDefinition.get(queue) as string | undefined) ??
      (queue === DEFAULT_QUEUE ? JSON.stringify(DEFAULT_DEFINITION) : undefined);
    if (text === undefined) return undefined;
    const known = this.parsed.get(queue);
    if (known?.text === text) return known.settings;
    const settings = settingsOf(JSON.parse(text) as QueueDefinition);
    this.parsed.set(queue, { text, settings });
    return settings;
  }

  /** Stores a definition; false when it is the one that is there. */
  define(queue: string, definition: QueueDefinition): boolean {
    const text = JSON.stringify(definition);
    if (this.selectDefinition.get(queue) === text) return false;
    this.upsertDefinition.run(queue, text);
    return true;
  }

  insert(job: NewJob, owner: string | null, now: number): WaitingJob {
    const metadata = job.metadata === undefined ? null : JSON.stringify(job.metadata);
    return this.insertJob.get(
      job.receipt,
      job.queue,
      job.group_key,
      job.function_id,
      JSON.stringify(job.payload ?? null),
      metadata,
      owner,
      now,
    ) as WaitingJob;
  }

  /** The last open job of a group, and the owner of the first: it has the whole group. */
  lastInGroup(queue: string, group: string): { id: number; owner: string | null } | undefined {
    return this.selectGroup.get({ queue, group }) as { id: number; owner: string | null } | undefined;
  }

  adopt(queue: string, group: string, owner: string): void {
    this.adoptGroup.run(owner, queue, group);
  }

  /** The open jobs of a group after `id`, in order. */
  inGroup(queue: string, group: string, id: number): WaitingJob[] {
    return this.groupAfter.all(queue, group, id) as WaitingJob[];
  }

  /** An open job, if `owner` still has it. */
  owned(id: number, owner: string): JobRow | undefined {
    return this.selectOwned.get(id, owner) as JobRow | undefined;
  }

  /** Removes a job that is done, unless somebody else has taken it. */
  finish(id: number, owner: string): void {
    this.remove.run(id, owner);
  }

  /** Keeps a job that failed for another try, or as dead, unless somebody else has taken it. */
  fail(id: number, owner: string, state: { attempts: number; not_before: number; last_error: string; dead: boolean }): void {
    this.updateFailed.run(state.attempts, state.not_before, state.last_error, state.dead ? 1 : 0, id, owner);
  }

  /** Those who own open jobs, and null when some have no owner. */
  owners(): (string | null)[] {
    const found: (string | null)[] = this.unowned.get() === undefined ? [] : [null];
    for (let owner = this.nextOwner.get('') as string | null; owner !== null; owner = this.nextOwner.get(owner) as string | null)
      found.push(owner);
    return found;
  }

  /** Gives all open jobs of `from` to `owner`, in order, but those of groups that somebody else has. */
  claim(from: string | null, owner: string): WaitingJob[] {
    return (this.claimOwner.all({ owner, from }) as WaitingJob[]).sort((a, b) => a.id - b.id);
  }

  /** Open jobs of `owner` after `id`, in order. */
  ownedSince(owner: string, id: number): WaitingJob[] {
    return this.ownedAfter.all(owner, id) as WaitingJob[];
  }

  release(owner: string): void {
    this.releaseAll.run(owner);
  }

  dead(queue: string, limit: number, offset: number): JobRow[] {
    return this.selectDead.all(queue, limit, offset) as JobRow[];
  }

  /** Removes the dead jobs of a queue, or the one with this receipt, and returns them in order. */
  exhume(queue: string, receipt: string | null): JobRow[] {
    return (this.takeDead.all({ queue, receipt }) as JobRow[]).sort((a, b) => a.id - b.id);
  }
}
