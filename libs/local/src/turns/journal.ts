import { HarnessError } from '#libs/contracts';
import type { CommitResult, Journal, ParkedMessage, RememberedSend, TurnRecord, Write } from '#libs/turn';
import type { ApprovalInbox } from '../approval/inbox.js';
import type { SessionRepository } from '../sessions/repository.js';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import type { CommitNotes, StoreCommits } from './commits.js';
import type { SqliteStepQueue } from './queue.js';
import { earliestExpiry, recordOf, type TurnHead, type TurnRow } from './rows.js';

type SaveRecord = Extract<Write, { kind: 'save-record' }>;

/** The journal of the embedded runtime: one commit is one SQLite transaction, shared with others of the same moment. */
export class SqliteJournal implements Journal {
  private readonly selectTurn: SqliteStatement;
  private readonly selectHead: SqliteStatement;
  private readonly selectDue: SqliteStatement;
  private readonly selectStranded: SqliteStatement;
  private readonly insertTurn: SqliteStatement;
  private readonly updateTurn: SqliteStatement;
  private readonly updateJob: SqliteStatement;
  private readonly selectParked: SqliteStatement;
  private readonly insertParked: SqliteStatement;
  private readonly deleteParked: SqliteStatement;
  private readonly selectKey: SqliteStatement;
  private readonly insertKey: SqliteStatement;

  constructor(
    db: SqliteConnection,
    private readonly commits: StoreCommits,
    private readonly sessions: SessionRepository,
    private readonly queue: SqliteStepQueue,
    private readonly approvals: ApprovalInbox,
  ) {
    this.selectTurn = db.prepare('SELECT * FROM turns WHERE session_id = ?');
    this.selectHead = db.prepare(
      `SELECT turn_id, version, status, job_step, not_before, owner, root,
         EXISTS (SELECT 1 FROM approvals WHERE approvals.session_id = turns.session_id) AS held
       FROM turns WHERE session_id = ?`,
    );
    this.selectDue = db.prepare('SELECT session_id FROM turns WHERE expires_at <= ? ORDER BY expires_at');
    this.selectStranded = db.prepare(
      `SELECT DISTINCT session_id FROM parked WHERE session_id NOT IN (SELECT session_id FROM turns WHERE status IN ('running', 'awaiting_functions'))`,
    );
    this.insertTurn = db.prepare(
      `INSERT INTO turns (turn_id, version, claims, status, record, expires_at, job_step, not_before, owner, root, session_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.updateTurn = db.prepare(
      `UPDATE turns SET turn_id = ?, version = ?, claims = ?, status = ?, record = ?, expires_at = ?, job_step = ?, not_before = ?, owner = ?, root = ? WHERE session_id = ?`,
    );
    this.updateJob = db.prepare('UPDATE turns SET job_step = ?, not_before = ?, owner = ? WHERE session_id = ?');
    this.selectParked = db.prepare('SELECT body FROM parked WHERE session_id = ? ORDER BY seq');
    this.insertParked = db.prepare('INSERT OR IGNORE INTO parked (session_id, entry_id, body) VALUES (?, ?, ?)');
    this.deleteParked = db.prepare('DELETE FROM parked WHERE session_id = ? AND entry_id = ?');
    this.selectKey = db.prepare('SELECT answer FROM idempotency WHERE key = ? AND expires_at > ?');
    this.insertKey = db.prepare('INSERT OR REPLACE INTO idempotency (key, answer, expires_at) VALUES (?, ?, ?)');
  }

  load(sessionId: string): Promise<TurnRecord | null> {
    const row = this.turn(sessionId);
    return Promise.resolve(row === undefined ? null : recordOf(row));
  }

  parked(sessionId: string): Promise<readonly ParkedMessage[]> {
    return Promise.resolve((this.selectParked.all(sessionId) as { body: string }[]).map((row) => JSON.parse(row.body) as ParkedMessage));
  }

  recall(key: string): Promise<RememberedSend | null> {
    const row = this.selectKey.get(key, Date.now()) as { answer: string } | undefined;
    return Promise.resolve(row === undefined ? null : (JSON.parse(row.answer) as RememberedSend));
  }

  async commit(writes: readonly Write[], point: string): Promise<CommitResult> {
    const result = await this.commits.run((notes): CommitResult => {
      const now = Date.now();
      if (writes.some((write) => !this.holds(write, now))) return 'conflict';
      for (const write of writes) this.apply(write, writes, notes);
      return 'committed';
    }, point);
    if (result === 'conflict') return result;
    for (const write of writes) if (write.kind === 'enqueue-step') this.queue.handOver(write.payload, write.notBefore);
    return result;
  }

  due(now: number): Promise<readonly string[]> {
    return Promise.resolve((this.selectDue.all(now) as { session_id: string }[]).map((row) => row.session_id));
  }

  stranded(): Promise<readonly string[]> {
    return Promise.resolve((this.selectStranded.all() as { session_id: string }[]).map((row) => row.session_id));
  }

  onAbortRequested(listener: (sessionId: string) => void): () => void {
    return this.queue.onAbortRequested(listener);
  }

  private turn(sessionId: string): TurnRow | undefined {
    return this.selectTurn.get(sessionId) as TurnRow | undefined;
  }

  /** A turn's row without its record. */
  private head(sessionId: string): TurnHead | undefined {
    return this.selectHead.get(sessionId) as TurnHead | undefined;
  }

  /** Checks what a write demands of the stored state, before anything is written. */
  private holds(write: Write, now: number): boolean {
    switch (write.kind) {
      case 'save-record': {
        const row = this.head(write.record.session_id);
        if ((row?.version ?? null) !== write.expectedVersion) return false;
        return write.requireNoneParked !== true || this.selectParked.get(write.record.session_id) === undefined;
      }
      case 'check-record':
        return this.head(write.session_id)?.version === write.version;
      case 'park-message': {
        const row = this.head(write.session_id);
        return (
          row !== undefined &&
          row.turn_id === write.turn_id &&
          (row.status === 'running' || (write.pending === true && row.status === 'awaiting_functions'))
        );
      }
      case 'remember-key':
        return this.selectKey.get(write.key, now) === undefined;
      case 'ensure-session':
      case 'append-entry':
      case 'put-entry':
      case 'set-status':
      case 'take-messages':
      case 'enqueue-step':
      case 'settle-step':
      case 'emit':
        return true;
    }
  }

  private apply(write: Write, all: readonly Write[], { log, events }: CommitNotes): void {
    switch (write.kind) {
      case 'ensure-session':
        this.sessions.ensure(write, write.timestamp, log);
        return;
      case 'append-entry':
        this.sessions.append(write.session_id, write.entry, log);
        return;
      case 'put-entry':
        if ('message' in write.entry) this.sessions.put(write.session_id, write.entry, log);
        else this.sessions.append(write.session_id, write.entry, log);
        return;
      case 'set-status':
        this.sessions.setStatus(write.session_id, write.status, write.reason, write.timestamp, log);
        return;
      case 'park-message':
        this.insertParked.run(write.session_id, write.parked.entry_id, JSON.stringify(write.parked));
        return;
      case 'take-messages':
        for (const entryId of write.entry_ids) this.deleteParked.run(write.session_id, entryId);
        return;
      case 'save-record':
        this.save(write, all, events);
        return;
      case 'remember-key':
        this.insertKey.run(write.key, JSON.stringify(write.answer), write.expires_at);
        return;
      case 'enqueue-step':
        if (!all.some((w) => w.kind === 'save-record' && w.record.session_id === write.payload.session_id)) {
          this.updateJob.run(write.payload.step, write.notBefore ?? 0, this.queue.owner, write.payload.session_id);
        }
        return;
      case 'settle-step':
        if (!all.some((w) => w.kind === 'save-record' && w.record.session_id === write.session_id))
          this.updateJob.run(null, 0, null, write.session_id);
        return;
      case 'emit':
        events.push(write.event);
        return;
      case 'check-record':
        return;
      default: {
        const unknown: never = write;
        throw new HarnessError('harness/internal', `unknown write ${JSON.stringify(unknown)}`);
      }
    }
  }

  /** Saves the record and, in the same row, what the commit says of its queued step. */
  private save(write: SaveRecord, all: readonly Write[], events: CommitNotes['events']): void {
    const { record } = write;
    const before = this.head(record.session_id);
    let job: [number | null, number, string | null] = [before?.job_step ?? null, before?.not_before ?? 0, before?.owner ?? null];
    for (const other of all) {
      if (other.kind === 'enqueue-step' && other.payload.session_id === record.session_id)
        job = [other.payload.step, other.notBefore ?? 0, this.queue.owner];
      if (other.kind === 'settle-step' && other.session_id === record.session_id) job = [null, 0, null];
    }
    const values = [
      record.turn_id,
      record.version,
      record.claims,
      record.status,
      JSON.stringify(record),
      earliestExpiry(record),
      ...job,
      before?.root ?? this.rootOf(record),
      record.session_id,
    ];
    (before === undefined ? this.insertTurn : this.updateTurn).run(...values);
    events.push(...this.approvals.follow(record, all, before?.held === 1));
  }

  /** The session at the root of the tree of a sub-agent's session; null for any other. Once known it stays. */
  private rootOf({ parent }: TurnRecord): string | null {
    return parent === null ? null : (this.head(parent.session_id)?.root ?? parent.session_id);
  }
}
