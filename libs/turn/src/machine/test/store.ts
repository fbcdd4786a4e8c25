import type { Entry, SessionStatus, TurnStepPayload } from '#libs/contracts';
import type { CommitResult, NewEntry, TurnEvent, Write } from '../../ports/journal.js';
import { isTerminal, type ParkedMessage, type TurnRecord } from '../../record/record.js';

/** A commit as it took effect: what it wrote over, and what it wrote. */
export interface Committed {
  before: TurnRecord | null;
  after: TurnRecord | null;
  writes: readonly Write[];
  /** Entries that it appended although they were there: they were left alone. */
  repeated: readonly string[];
}

/** The store of one session in memory, with exactly what `Journal` promises: guards first, then all writes or none. */
export class MemoryStore {
  record: TurnRecord | null = null;
  entries: Entry[] = [];
  parked: ParkedMessage[] = [];
  /** The queued step. */
  job: TurnStepPayload | null = null;
  status: SessionStatus = 'idle';
  readonly events: TurnEvent[] = [];

  constructor(private readonly committed: (commit: Committed) => void) {}

  commit(writes: readonly Write[]): CommitResult {
    if (!writes.every((write) => this.holds(write))) return 'conflict';
    const before = this.record;
    const repeated = writes.flatMap((write) =>
      write.kind === 'append-entry' && this.entry(write.entry.entry_id) !== null ? [write.entry.entry_id] : [],
    );
    for (const write of writes) this.apply(write);
    this.committed({ before, after: this.record, writes, repeated });
    return 'committed';
  }

  /** Another process takes the queued step over: a former owner that still lives can save nothing more. */
  takeOver(): void {
    if (this.record === null || this.job === null || isTerminal(this.record.status)) return;
    this.record = { ...this.record, version: this.record.version + 1, claims: this.record.claims + 1 };
  }

  entry(id: string): Entry | null {
    return this.entries.find((entry) => entry.id === id) ?? null;
  }

  private holds(write: Write): boolean {
    switch (write.kind) {
      case 'save-record': {
        if ((this.record?.version ?? null) !== write.expectedVersion) return false;
        return write.requireNoneParked !== true || this.parked.length === 0;
      }
      case 'check-record':
        return this.record?.version === write.version;
      case 'park-message':
        return this.record !== null && this.record.turn_id === write.turn_id && this.record.status === 'running';
      default:
        return true;
    }
  }

  private apply(write: Write): void {
    switch (write.kind) {
      case 'append-entry':
        if (this.entry(write.entry.entry_id) === null) this.entries.push(entryOf(write.entry, 0));
        return;
      case 'put-entry': {
        const index = this.entries.findIndex((entry) => entry.id === write.entry.entry_id);
        const present = this.entries[index];
        if (present === undefined) this.entries.push(entryOf(write.entry, 0));
        else this.entries[index] = entryOf(write.entry, present.revision + 1);
        return;
      }
      case 'set-status':
        this.status = write.status;
        return;
      case 'park-message':
        this.parked = [...this.parked, write.parked];
        return;
      case 'take-messages':
        this.parked = this.parked.filter((message) => !write.entry_ids.includes(message.entry_id));
        return;
      case 'save-record':
        this.record = write.record;
        return;
      case 'enqueue-step':
        this.job = write.payload;
        return;
      case 'settle-step':
        this.job = null;
        return;
      case 'emit':
        this.events.push(write.event);
        return;
      case 'ensure-session':
      case 'check-record':
      case 'remember-key':
        return;
      default: {
        const unknown: never = write;
        throw new Error(`unknown write ${JSON.stringify(unknown)}`);
      }
    }
  }
}

function entryOf(entry: NewEntry, revision: number): Entry {
  const base = {
    id: entry.entry_id,
    revision,
    timestamp: entry.timestamp,
    ...(entry.origin === undefined ? {} : { origin: entry.origin }),
  };
  return 'message' in entry ? { kind: 'message', ...base, message: entry.message } : { kind: 'custom', ...base, ...entry.custom };
}
