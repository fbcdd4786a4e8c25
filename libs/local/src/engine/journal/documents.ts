import type { ParkedMessage, RememberedSend, TurnRecord, Write } from '#libs/turn';

/** What a commit does beside its own document. Each can be done twice, and does no harm then. */
export type Effect =
  | Extract<Write, { kind: 'ensure-session' | 'append-entry' | 'put-entry' | 'set-status' | 'remember-key' | 'emit' }>
  /** The document of another session, say that of a child. */
  | { kind: 'put-document'; document: TurnDocument };

/** All that is kept of a session's turns. Written as a whole, it is what makes a commit one: what the commit does elsewhere stands in it first. */
export interface TurnDocument {
  session_id: string;
  /** Grows with each write. */
  revision: number;
  record: TurnRecord | null;
  /** The queued step; `not_before` is ms since the epoch. */
  job: { step: number; not_before: number } | null;
  /** Messages that wait for the running turn, in order of arrival. */
  parked: ParkedMessage[];
  /** What the last commit does elsewhere, in order. They may have been done. */
  effects: Effect[];
}

export const emptyDocument = (session_id: string): TurnDocument => ({
  session_id,
  revision: 0,
  record: null,
  job: null,
  parked: [],
  effects: [],
});

/** What a send with a key led to. `expires_at` is ms since the epoch. */
export interface KeyDocument {
  key: string;
  answer: RememberedSend;
  expires_at: number;
}

/**
 * Where the documents are. A write is whole or not at all; who has answered for one tells how durable it is. Throws `harness/storage`, and
 * `harness/damaged_record` for what no harness wrote.
 */
export interface TurnDocuments {
  /** What a write outlives, in words for a person. */
  readonly guarantee: string;
  read(sessionId: string): Promise<TurnDocument | null>;
  /** Writes a document; `isOpen` while it has to be looked at when the process starts anew. */
  write(document: TurnDocument, isOpen: boolean): Promise<void>;
  /** The sessions whose documents are open. */
  open(): Promise<string[]>;
  readKey(key: string): Promise<KeyDocument | null>;
  writeKey(key: KeyDocument): Promise<void>;
  /** Drops keys whose time is over at `now`. */
  dropKeys(now: number): Promise<void>;
  /** Drops what is kept of a session. */
  remove(sessionId: string): Promise<void>;
}
