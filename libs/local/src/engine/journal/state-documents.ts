import type { JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { damaged, documentFault, isKeyDocument } from './check.js';
import type { KeyDocument, TurnDocument, TurnDocuments } from './documents.js';

/** Scopes of `state::*` that the harness keeps its documents in. */
const TURNS = 'harness-turns';
const OPEN = 'harness-turns-open';
const KEYS = 'harness-keys';

/** How long what was written is kept here, in ms, at least. */
const KEEP_MS = 60_000;

/** How often the engine saves its state, in ms; `unknown` when only its adapter knows. */
export type Saved = number | 'never' | 'unknown';

const KEPT_ON_DISK = 'HARNESS_STORE=sqlite keeps turns on the disk of this worker';

const riskOf = (saved: number | 'unknown'): string =>
  saved === 'unknown' ? 'how durable that is depends on its adapter' : `which it saves every ${saved} ms`;

/**
 * Documents in the state of the engine. An engine whose state is saved by a timer may answer for a write and lose it when it is killed;
 * so what is open, and what was written lately, is kept here, to be written again when the engine is back.
 */
export class StateDocuments implements TurnDocuments {
  readonly guarantee: string;
  /** Sessions that are marked as open. */
  private readonly marked = new Set<string>();
  /** Documents that are open, however long ago they were written: a turn that waits may wait for days. */
  private readonly live = new Map<string, TurnDocument>();
  private readonly recent = new Map<string, { at: number; document: TurnDocument }>();
  private readonly recentKeys = new Map<string, { at: number; document: KeyDocument }>();
  private readonly keepMs: number;

  constructor(
    private readonly bus: Bus,
    private readonly timeoutMs: () => number,
    saved: Saved,
  ) {
    this.keepMs = Math.max(KEEP_MS, typeof saved === 'number' ? 2 * saved : 0);
    this.guarantee =
      saved === 'never'
        ? 'turns are in the memory of the engine: they outlive this worker and its disk. When the engine ends, turns that have not ended and what was ' +
          `written in the last ${this.keepMs / 1000} s are written again while this worker lives; all else is lost, also which sends have been taken. ` +
          KEPT_ON_DISK
        : `turns are in the state of the engine (${riskOf(saved)}): they outlive this worker and its disk. What the engine has answered for and not saved when ` +
          `it is killed is written again while this worker lives; ${KEPT_ON_DISK}`;
  }

  /** Sessions whose documents are open, or were written lately. */
  get written(): readonly string[] {
    return [...this.live.keys(), ...this.recent.keys()];
  }

  /** Writes a document again that is open, or was written lately, if the engine has lost it. Nothing else may write it meanwhile. Throws as `Bus.trigger`. */
  async restore(sessionId: string): Promise<void> {
    const written = this.kept(sessionId);
    if (written === undefined) return;
    const stored = await this.found(sessionId);
    if (documentFault(stored, sessionId) === null && (stored as TurnDocument).revision >= written.revision) return;
    this.marked.delete(sessionId);
    await this.write(written, this.live.has(sessionId));
  }

  /** The same for keys, which do not change. */
  async restoreKeys(): Promise<void> {
    for (const { document } of [...this.recentKeys.values()]) {
      if ((await this.storedKey(document.key)) === null) await this.writeKey(document);
    }
  }

  async read(sessionId: string): Promise<TurnDocument | null> {
    // What this process has kept is what there is, whatever the engine has of it: nobody else writes.
    const kept = this.kept(sessionId);
    if (kept !== undefined) return kept;
    const stored = await this.stored(sessionId);
    if (stored !== null && this.marked.has(sessionId)) this.live.set(sessionId, stored);
    return stored;
  }

  private kept(sessionId: string): TurnDocument | undefined {
    return this.live.get(sessionId) ?? this.recent.get(sessionId)?.document;
  }

  private async stored(sessionId: string): Promise<TurnDocument | null> {
    const found = await this.found(sessionId);
    if (found === null) return null;
    const fault = documentFault(found, sessionId);
    if (fault !== null) throw damaged(TURNS, sessionId, fault);
    return found as TurnDocument;
  }

  private async found(sessionId: string): Promise<unknown> {
    return (await this.call('get', { scope: TURNS, key: sessionId })) ?? null;
  }

  async write(document: TurnDocument, isOpen: boolean): Promise<void> {
    const { session_id } = document;
    if (isOpen && !this.marked.has(session_id)) {
      await this.call('set', { scope: OPEN, key: session_id, value: { session_id } });
      this.marked.add(session_id);
    }
    await this.call('set', { scope: TURNS, key: session_id, value: document as unknown as JsonValue });
    if (!isOpen && this.marked.has(session_id)) {
      await this.call('delete', { scope: OPEN, key: session_id });
      this.marked.delete(session_id);
    }
    this.recent.delete(session_id);
    if (isOpen) this.live.set(session_id, document);
    else {
      this.live.delete(session_id);
      this.recent.set(session_id, { at: Date.now(), document });
    }
    prune(this.recent, Date.now() - this.keepMs);
  }

  async open(): Promise<string[]> {
    const marks = (await this.call<({ session_id?: unknown } | null)[] | null>('list', { scope: OPEN })) ?? [];
    const sessions = marks.map((mark) => mark?.session_id).filter((id) => typeof id === 'string' && id !== '') as string[];
    for (const id of sessions) this.marked.add(id);
    return sessions;
  }

  async readKey(key: string): Promise<KeyDocument | null> {
    return this.recentKeys.get(key)?.document ?? (await this.storedKey(key));
  }

  private async storedKey(key: string): Promise<KeyDocument | null> {
    const found = (await this.call('get', { scope: KEYS, key })) ?? null;
    if (found !== null && !isKeyDocument(found)) throw damaged(KEYS, key, 'no answer to a send');
    return found;
  }

  async writeKey(document: KeyDocument): Promise<void> {
    await this.call('set', { scope: KEYS, key: document.key, value: document as unknown as JsonValue });
    this.recentKeys.set(document.key, { at: Date.now(), document });
    prune(this.recentKeys, Date.now() - this.keepMs);
  }

  async dropKeys(now: number): Promise<void> {
    const keys = ((await this.call<unknown[] | null>('list', { scope: KEYS })) ?? []).filter(isKeyDocument);
    for (const { key, expires_at } of keys) if (expires_at <= now) await this.call('delete', { scope: KEYS, key });
  }

  async remove(sessionId: string): Promise<void> {
    await this.call('delete', { scope: TURNS, key: sessionId });
    await this.call('delete', { scope: OPEN, key: sessionId });
    this.marked.delete(sessionId);
    this.live.delete(sessionId);
    this.recent.delete(sessionId);
  }

  private call<T>(what: 'get' | 'set' | 'delete' | 'list', payload: { [key: string]: JsonValue }): Promise<T> {
    return this.bus.trigger<T>({ function_id: `state::${what}`, payload, timeoutMs: this.timeoutMs() });
  }
}

/** Drops what is older than `since`; the oldest come first. */
function prune(recent: Map<string, { at: number }>, since: number): void {
  for (const [key, { at }] of recent) {
    if (at >= since) return;
    recent.delete(key);
  }
}
