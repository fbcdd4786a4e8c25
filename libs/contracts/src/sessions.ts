import type { AgentMessage, JsonObject, JsonValue } from './messages.js';

export type SessionStatus = 'idle' | 'working' | 'done' | 'error';

/** What `session::get` says of a session. Times are ms since the epoch. */
export interface SessionMeta {
  session_id: string;
  title: string;
  description: string;
  status: SessionStatus;
  status_reason?: string;
  metadata?: JsonObject;
  message_count: number;
  created_at: number;
  updated_at: number;
  /** The session that this one was forked from. */
  forked_from?: string;
  draft?: string;
}
/** A stored item of a session. `revision` starts at 0 and grows with each update. */
export type Entry =
  | { kind: 'message'; id: string; parent_id?: string; revision: number; timestamp: number; origin?: JsonObject; message: AgentMessage }
  | {
      kind: 'custom';
      id: string;
      parent_id?: string;
      revision: number;
      timestamp: number;
      origin?: JsonObject;
      custom_type: string;
      data: JsonValue;
    };
/** One row of `session::messages`: a message, or custom data. */
export interface MessageItem {
  entry_id: string;
  message?: AgentMessage;
  custom?: { custom_type: string; data: JsonValue };
  origin?: JsonObject;
  /** True where the heavy parts of the message were left out. */
  elided?: boolean;
}

/** The six event types of the session store, with their payloads. */
export interface SessionEvents {
  'session::created': {
    session_id: string;
    title: string;
    description: string;
    status: SessionStatus;
    forked_from?: string;
    created_at: number;
  };
  'session::message-added': {
    session_id: string;
    entry_id: string;
    parent_id: string | null;
    message?: AgentMessage;
    custom?: { custom_type: string; data: JsonValue };
    origin?: JsonObject;
    timestamp: number;
  };
  'session::message-updated': {
    session_id: string;
    entry_id: string;
    message: AgentMessage;
    revision: number;
    origin?: JsonObject;
    timestamp: number;
  };
  'session::status-changed': {
    session_id: string;
    status: SessionStatus;
    previous_status: SessionStatus;
    status_reason?: string;
    timestamp: number;
  };
  'session::meta-updated': { session_id: string; title: string; description: string; metadata?: JsonObject; timestamp: number };
  /** `metadata` is what the session had: bindings filter by it, and it is not delivered. */
  'session::deleted': { session_id: string; timestamp: number; metadata?: JsonObject };
}
export type SessionEventType = keyof SessionEvents;
/** An event with its type, as the outbox keeps it. */
export type SessionEvent = { [T in SessionEventType]: { type: T; payload: SessionEvents[T] } }[SessionEventType];
