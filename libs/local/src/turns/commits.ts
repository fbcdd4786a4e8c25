import type { TurnEvent } from '#libs/turn';
import type { ApprovalEvent } from '../approval/events.js';
import type { ProcessRegistry } from '../processes/registry.js';
import { ChangeLog } from '../sessions/changes.js';
import type { SqliteTranscript } from '../sessions/transcript.js';
import type { SqliteWriter } from '../sqlite/index.js';
import type { EventDelivery, StoredEvent } from './delivery.js';

/** What the work of a commit tells of itself. */
export interface CommitNotes {
  /** Changes of sessions: for caches and session events. */
  readonly log: ChangeLog;
  /** Events of turns and of approvals to deliver. */
  readonly events: (TurnEvent | ApprovalEvent)[];
}

/** Runs changes of sessions and turns as durable commits, and afterwards brings caches and listeners up to date. */
export class StoreCommits {
  constructor(
    private readonly writer: SqliteWriter,
    private readonly transcript: SqliteTranscript,
    private readonly processes: ProcessRegistry,
    private readonly delivery: EventDelivery,
  ) {}

  /**
   * Runs `work` in a write transaction and resolves with its result once that is durable. `work` is synchronous and may
   * run again; it throws to write nothing. `point` names the commit for failpoints.
   */
  async run<T>(work: (notes: CommitNotes) => T, point: string): Promise<T> {
    let notes: CommitNotes = { log: new ChangeLog(), events: [] };
    let outbox: StoredEvent[] = [];
    const result = await this.writer.submit(() => {
      notes = { log: new ChangeLog(), events: [] };
      const value = work(notes);
      this.processes.renew(Date.now());
      outbox = this.delivery.record(notes.events, notes.log.events);
      return value;
    }, point);
    this.transcript.apply(notes.log.entries);
    this.delivery.deliver(outbox);
    return result;
  }
}
