import type { Entry, SessionStatus, TurnStepPayload } from '#libs/contracts';
import type { CommitResult, NewEntry, RememberedSend, TurnEvent, Write } from '../../ports/journal.js';
import { isTerminal, type ParkedMessage, type TurnRecord } from '../../record/record.js';

/** What a commit did to one session: what it wrote over, and what it wrote. */
export interface Committed {
  session: SessionState;
  before: TurnRecord | null;
  after: TurnRecord | null;
  writes: readonly Write[];
  /** Entries that it appended although they were there: they were left alone. */
  repeated: readonly string[];
}

/** The store in memory, with exactly what `Journal` promises: guards of all sessions first, then all writes or none. */
export class MemoryStore {
  readonly sessions = new Map<string, SessionState>();
  readonly keys = new Map<string, RememberedSend>();
  readonly events: TurnEvent[] = [];

  constructor(private readonly committed: (commit: Committed) => void) {}

  of(sessionId: string): SessionState {
    const session = this.sessions.get(sessionId) ?? new SessionState(sessionId);
    this.sessions.set(sessionId, session);
    return session;
  }

  commit(writes: readonly Write[]): CommitResult {
    const isNew = writes.every((write) => write.kind !== 'remember-key' || !this.keys.has(write.key));
    if (!isNew || !writes.every((write) => this.of(sessionOf(write) ?? '').holds(write))) return 'conflict';
    for (const write of writes) {
      if (write.kind === 'remember-key') this.keys.set(write.key, write.answer);
      if (write.kind === 'emit') this.events.push(write.event);
    }
    for (const sessionId of new Set(writes.map(sessionOf)))
      if (sessionId !== null) this.committed(this.of(sessionId).commit(writes.filter((write) => sessionOf(write) === sessionId)));
    return 'committed';
  }
}

/** The session that a write is about; null for those of none. */
export function sessionOf(write: Write): string | null {
  switch (write.kind) {
    case 'save-record':
      return write.record.session_id;
    case 'enqueue-step':
      return write.payload.session_id;
    case 'emit':
      return write.event.payload.session_id;
    case 'remember-key':
      return null;
    default:
      return write.session_id;
  }
}

/** What is stored of one session. */
export class SessionState {
  record: TurnRecord | null = null;
  entries: Entry[] = [];
  parked: ParkedMessage[] = [];
  /** The queued step. */
  job: TurnStepPayload | null = null;
  status: SessionStatus = 'idle';

  constructor(readonly id: string) {}

  commit(writes: readonly Write[]): Committed {
    const before = this.record;
    const repeated = writes.flatMap((write) =>
      write.kind === 'append-entry' && this.entry(write.entry.entry_id) !== null ? [write.entry.entry_id] : [],
    );
    for (const write of writes) this.apply(write);
    return { session: this, before, after: this.record, writes, repeated };
  }

  /** Another process takes the queued step over: a former owner that still lives can save nothing more. */
  takeOver(): void {
    if (this.record === null || this.job === null || isTerminal(this.record.status)) return;
    this.record = { ...this.record, version: this.record.version + 1, claims: this.record.claims + 1 };
  }

  entry(id: string): Entry | null {
    return this.entries.find((entry) => entry.id === id) ?? null;
  }

  holds(write: Write): boolean {
    switch (write.kind) {
      case 'save-record': {
        if ((this.record?.version ?? null) !== write.expectedVersion) return false;
        return write.requireNoneParked !== true || this.parked.length === 0;
      }
      case 'check-record':
        return this.record?.version === write.version;
      case 'park-message':
        return this.record !== null && this.record.turn_id === write.turn_id && this.takesMessages(write.pending === true);
      default:
        return true;
    }
  }

  private takesMessages(pending: boolean): boolean {
    return this.record?.status === 'running' || (pending && this.record?.status === 'awaiting_functions');
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
