import type {
  AgentMessage,
  JsonObject,
  JsonValue,
  ParentRef,
  SessionStatus,
  TurnCompletedEvent,
  TurnStartedEvent,
  TurnStepPayload,
} from '#libs/contracts';
import type { CallResult } from '../machine/decision.js';
import type { ParkedMessage, TurnRecord } from '../record/record.js';

/** One durable change. Writes of one commit take effect together, in order. */
export type Write =
  /** Creates the session when it is not there; title and metadata are used only then. */
  | { kind: 'ensure-session'; session_id: string; title?: string; metadata?: JsonObject; timestamp: number }
  /** Appends at the active leaf. Idempotent: an entry id that is there is left alone. */
  | { kind: 'append-entry'; session_id: string; entry: NewEntry }
  /** Replaces the message of an entry, or appends it when it is not there yet. */
  | { kind: 'put-entry'; session_id: string; entry: NewEntry }
  | { kind: 'set-status'; session_id: string; status: SessionStatus; reason?: string; timestamp: number }
  /** Keeps a message for the running turn, or with `pending` also for one that waits for calls. A conflict when `turn_id` is not there any more. */
  | { kind: 'park-message'; session_id: string; turn_id: string; parked: ParkedMessage; pending?: true }
  /** Removes parked messages; their entries are appended by the same commit. */
  | { kind: 'take-messages'; session_id: string; entry_ids: readonly string[] }
  /**
   * The fence: a conflict unless the stored record has `expectedVersion` (null = the session has no record).
   * `requireNoneParked` also makes it a conflict when a message is parked, so that a turn cannot end over one.
   */
  | { kind: 'save-record'; record: TurnRecord; expectedVersion: number | null; requireNoneParked?: boolean }
  /** The fence alone, for writes that leave the record as it is. */
  | { kind: 'check-record'; session_id: string; version: number }
  /** Remembers what a send with an idempotency key led to. A conflict when the key is there. */
  | { kind: 'remember-key'; key: string; answer: RememberedSend; expires_at: number }
  /** Queues a step; in memory for this process right after the commit, unless `notBefore` (ms since the epoch) is later. */
  | { kind: 'enqueue-step'; payload: TurnStepPayload; notBefore?: number }
  /** Takes the queued step off the queue without another: the turn parked or ended. */
  | { kind: 'settle-step'; session_id: string }
  /** Delivered to bound functions after the commit, at least once. */
  | { kind: 'emit'; event: TurnEvent };

export type TurnEvent = PublishedTurnEvent | ChildEndedEvent;

/** An event that functions can be bound to. */
export type PublishedTurnEvent =
  | { type: 'harness::turn-started'; payload: TurnStartedEvent }
  | { type: 'harness::turn-completed'; payload: TurnCompletedEvent };

/** Not published: tells the loop itself that a child has ended, and what to answer its parent. The child's session may have gone on since. */
export interface ChildEndedEvent {
  type: 'harness::child-ended';
  payload: { session_id: string; turn_id: string; parent: ParentRef; result: CallResult; had_failure?: true };
}

/** True for the events of turns, as opposed to those of sessions. */
export const isTurnEvent = (event: { type: string }): event is PublishedTurnEvent =>
  event.type === 'harness::turn-started' || event.type === 'harness::turn-completed';

/** An entry to store: a message, or custom data that no model sees. */
export type NewEntry = { entry_id: string; timestamp: number; origin?: JsonObject } & (
  | { message: AgentMessage }
  | { custom: { custom_type: string; data: JsonValue } }
);

/** What a send with an idempotency key was answered. `digest` tells whether a repeat asks for the same. */
export interface RememberedSend {
  session_id: string;
  turn_id: string;
  entry_id: string;
  digest: string;
}

/** `conflict`: a newer version of the record is there, or a parked message, or the key; nothing was written. */
export type CommitResult = 'committed' | 'conflict';

/** The durable state of turns. Acknowledged means on disk. */
export interface Journal {
  /** The record of the session's latest turn. */
  load(sessionId: string): Promise<TurnRecord | null>;
  /** Messages that wait for the running turn, in order of arrival. */
  parked(sessionId: string): Promise<readonly ParkedMessage[]>;
  /** What the key led to, unless it is older than its time to live. */
  recall(key: string): Promise<RememberedSend | null>;
  /**
   * All or nothing, whatever happens meanwhile. At least one write is about a session.
   * `point` names the commit for failpoints. Throws `harness/storage` when the store cannot write.
   */
  commit(writes: readonly Write[], point: string): Promise<CommitResult>;
  /** Sessions with a pending call whose time is over at `now` (ms since the epoch). */
  due(now: number): Promise<readonly string[]>;
  /** Sessions with a parked message and no live turn to take it: a crash came right after a turn ended. */
  stranded(): Promise<readonly string[]>;
  /** Calls `listener` when another process asks to stop a turn that this one runs. Returns how to end that. */
  onAbortRequested(listener: (sessionId: string) => void): () => void;
}
/** Injection token of the `Journal`. */
export const JOURNAL = Symbol('harness:journal');
