import { errorCode, errorMessage, HarnessError, type TurnStepPayload } from '#libs/contracts';
import { type CommitResult, isLive, type Journal, type ParkedMessage, type RememberedSend, type TurnRecord, type Write } from '#libs/turn';
import { earliestExpiry } from '../../turns/rows.js';
import { type Effect, emptyDocument, type TurnDocument, type TurnDocuments } from './documents.js';
import type { BusEntries } from './entries.js';
import { insist } from './insist.js';
import type { LocalEffects } from './local-effects.js';
import { Locks } from './locks.js';
import type { StateDocuments } from './state-documents.js';
import { documentsAfter, holds, isOpen, isSketch, sessionOf } from './writes.js';

/** What is known of a document that is open, while it is not in use. */
interface Open {
  isLive: boolean;
  hasParked: boolean;
  /** When its first pending call times out, ms since the epoch. */
  dueAt: number | null;
}

export interface BusJournalParts {
  documents: TurnDocuments;
  entries: BusEntries;
  local: LocalEffects;
  report: (message: string, context: { [key: string]: unknown }) => void;
  /** Resolves while this is the one process that may write. Throws otherwise. */
  mayWrite: () => Promise<void>;
  /** Ends the waiting for a store that is away. */
  signal: AbortSignal;
}

/** A queued step and when it may begin, ms since the epoch. */
export interface QueuedStep {
  payload: TurnStepPayload;
  notBefore: number;
}

/**
 * The journal of a worker whose conversations are kept by another one. What a commit changes stands in one document, with all that it
 * does elsewhere: once that is written the commit has happened, and whatever is left of it is done, or done again, until it is complete.
 * This is safe for one process at a time, which is what an engine allows.
 */
export class BusJournal implements Journal {
  /** Called with the steps of a commit, once it is complete. */
  handOver: (step: QueuedStep) => void = () => undefined;
  private readonly locks = new Locks();
  /** Documents of turns that run, complete. */
  private readonly cache = new Map<string, TurnDocument>();
  private readonly open = new Map<string, Open>();

  constructor(private readonly parts: BusJournalParts) {}

  /** Completes what a process before this one has begun, and reports a session where it cannot. Returns the steps that are queued. */
  async recover(): Promise<QueuedStep[]> {
    const { documents } = this.parts;
    await this.insist(() => documents.dropKeys(Date.now()));
    const steps: QueuedStep[] = [];
    for (const session_id of await this.insist(() => documents.open())) {
      const { record, job } = await this.document(session_id).catch((error: unknown) => {
        if (errorCode(error) !== 'harness/damaged_record') throw error;
        this.parts.report('a turn cannot go on', { session_id, error: errorMessage(error) });
        return emptyDocument(session_id);
      });
      if (job !== null && isLive(record))
        steps.push({ payload: { session_id, turn_id: record.turn_id, step: job.step }, notBefore: job.not_before });
    }
    return steps;
  }

  async load(sessionId: string): Promise<TurnRecord | null> {
    return (await this.document(sessionId)).record;
  }

  async parked(sessionId: string): Promise<readonly ParkedMessage[]> {
    return (await this.document(sessionId)).parked;
  }

  /** The queued step of a session. */
  async job(sessionId: string): Promise<TurnDocument['job']> {
    return (await this.document(sessionId)).job;
  }

  async recall(key: string): Promise<RememberedSend | null> {
    const found = await this.insist(() => this.parts.documents.readKey(key));
    return found === null || found.expires_at <= Date.now() ? null : found.answer;
  }

  async commit(writes: readonly Write[]): Promise<CommitResult> {
    const sessions = [...new Set(writes.flatMap(sessionOf))];
    const keys = writes.flatMap((write) => (write.kind === 'remember-key' ? [write.key] : []));
    const result = await this.locks.hold([...sessions.map(nameOf), ...keys.map((key) => `key ${key}`)], async () => {
      const before = new Map<string, TurnDocument>();
      for (const id of sessions) before.set(id, await this.complete(id));
      for (const key of keys) if ((await this.recall(key)) !== null) return 'conflict';
      if (!writes.every((write) => holds(write, before))) return 'conflict';
      if (writes.every(isSketch)) return await this.sketch(writes);
      await this.write(before, writes);
      return 'committed';
    });
    if (result === 'committed')
      for (const write of writes)
        if (write.kind === 'enqueue-step') this.handOver({ payload: write.payload, notBefore: write.notBefore ?? 0 });
    return result;
  }

  due(now: number): Promise<readonly string[]> {
    const due = [...this.open].filter(([, { dueAt }]) => dueAt !== null && dueAt <= now);
    return Promise.resolve(due.sort(([, a], [, b]) => (a.dueAt ?? 0) - (b.dueAt ?? 0)).map(([sessionId]) => sessionId));
  }

  stranded(): Promise<readonly string[]> {
    return Promise.resolve(
      [...this.open].filter(([, { isLive: lives, hasParked }]) => hasParked && !lives).map(([sessionId]) => sessionId),
    );
  }

  /** Nobody else stops the turns of this process. */
  onAbortRequested(): () => void {
    return () => undefined;
  }

  /** Turns that wait for calls. */
  get parkedTurns(): number {
    return [...this.open.values()].filter(({ dueAt }) => dueAt !== null).length;
  }

  /** Writes again what the engine has lost of what was written lately. */
  async restore(documents: StateDocuments): Promise<void> {
    await this.parts.mayWrite();
    for (const id of documents.written) await this.locks.hold([nameOf(id)], () => this.insist(() => documents.restore(id)));
    await this.insist(() => documents.restoreKeys());
  }

  /** Drops what is kept of a session that is gone. */
  async forget(sessionId: string): Promise<void> {
    await this.locks.hold([nameOf(sessionId)], async () => {
      await this.parts.documents.remove(sessionId);
      this.cache.delete(sessionId);
      this.open.delete(sessionId);
    });
  }

  private async document(sessionId: string): Promise<TurnDocument> {
    return this.cache.get(sessionId) ?? (await this.locks.hold([nameOf(sessionId)], () => this.complete(sessionId)));
  }

  /** Under its lock: the document of a session, after all that its last commit does elsewhere has been done. */
  private async complete(sessionId: string): Promise<TurnDocument> {
    const cached = this.cache.get(sessionId);
    if (cached !== undefined) return cached;
    const { documents } = this.parts;
    const stored = (await this.insist(() => documents.read(sessionId))) ?? emptyDocument(sessionId);
    return stored.effects.length === 0 ? this.keep(stored) : await this.finish(stored, (document) => this.putIfNewer(document));
  }

  /** Under the locks: makes the writes happen, as one. */
  private async write(before: ReadonlyMap<string, TurnDocument>, writes: readonly Write[]): Promise<void> {
    const { documents } = this.parts;
    const [first, ...others] = documentsAfter(before, writes);
    if (first === undefined) throw new HarnessError('harness/internal', 'a commit must be about a session');
    first.effects.push(...others.map((document): Effect => ({ kind: 'put-document', document })));
    const whole = JSON.parse(JSON.stringify(first)) as TurnDocument; // as it will be read
    try {
      await this.parts.mayWrite();
      await this.insist(() => documents.write(whole, isOpen(whole)));
      await this.finish(whole, (document) => this.put(document));
    } catch (error) {
      // What came of it is not known: it is read when it is needed.
      for (const { session_id } of [first, ...others]) this.cache.delete(session_id);
      throw error;
    }
  }

  /** Does what a document says is to be done elsewhere. */
  private async finish(document: TurnDocument, put: (other: TurnDocument) => Promise<void>): Promise<TurnDocument> {
    const { documents, entries, local } = this.parts;
    for (const effect of document.effects) {
      switch (effect.kind) {
        case 'ensure-session':
        case 'append-entry':
        case 'put-entry':
        case 'set-status':
          await entries.apply(effect);
          break;
        case 'remember-key': {
          const { key, answer, expires_at } = effect;
          await this.insist(() => documents.writeKey({ key, answer, expires_at }));
          break;
        }
        case 'put-document':
          await put(effect.document);
          break;
        case 'emit':
          break; // together, below
        default: {
          const unknown: never = effect;
          throw new HarnessError('harness/internal', `unknown effect ${JSON.stringify(unknown)}`);
        }
      }
    }
    await local.apply(document);
    const done = { ...document, effects: [] };
    // A turn that runs is written again soon. One that rests is not to be looked at again.
    if (document.effects.length > 0 && document.record?.status !== 'running') await this.insist(() => documents.write(done, isOpen(done)));
    return this.keep(done);
  }

  /** Writes the document of a child that a commit has made, unless that has been done and the child has gone on. */
  private async putIfNewer(document: TurnDocument): Promise<void> {
    const { documents } = this.parts;
    const stored = await this.insist(() => documents.read(document.session_id));
    if (stored === null || stored.revision < document.revision) await this.put(document);
  }

  private async put(document: TurnDocument): Promise<void> {
    await this.insist(() => this.parts.documents.write(document, isOpen(document)));
    this.keep(document);
  }

  /** A stream's state so far changes nothing but its entry, and is not waited for. */
  private async sketch(writes: readonly Write[]): Promise<CommitResult> {
    for (const write of writes) if (write.kind === 'put-entry') await this.parts.entries.sketch(write);
    return 'committed';
  }

  private keep(document: TurnDocument): TurnDocument {
    const { session_id, record, parked } = document;
    if (record?.status === 'running') this.cache.set(session_id, document);
    else this.cache.delete(session_id);
    if (isOpen(document))
      this.open.set(session_id, {
        isLive: isLive(record),
        hasParked: parked.length > 0,
        dueAt: record === null ? null : earliestExpiry(record),
      });
    else this.open.delete(session_id);
    return document;
  }

  private insist<T>(call: () => Promise<T>): Promise<T> {
    return insist(call, this.parts.signal);
  }
}

const nameOf = (sessionId: string): string => `session ${sessionId}`;
