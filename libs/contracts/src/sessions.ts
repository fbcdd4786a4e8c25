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
  forked_from?: { session_id: string; entry_id: string };
  draft?: string;
}
/** A stored item of a session. `revision` starts at 1 and grows with each update. */
export type Entry =
  | { kind: 'message'; id: string; parent_id?: string; revision: number; timestamp: number; origin?: JsonObject; message: AgentMessage }
  | { kind: 'custom'; id: string; parent_id?: string; revision: number; timestamp: number; origin?: JsonObject; custom_type: string; data: JsonValue };
/** One row of `session::messages`. */
export interface MessageItem {
  entry_id: string;
  message?: AgentMessage;
  custom?: { custom_type: string; data: JsonValue };
  origin?: JsonObject;
}

/** The six event types of the session store, with their payloads. */
export interface SessionEvents {
  'session::created': {
    session_id: string; title: string; description: string; status: SessionStatus;
    forked_from?: { session_id: string; entry_id: string }; created_at: number;
  };
  'session::message-added': {
    session_id: string; entry_id: string; parent_id: string | null; message?: AgentMessage;
    custom?: { custom_type: string; data: JsonValue }; origin?: JsonObject; timestamp: number;
  };
  'session::message-updated': {
    session_id: string; entry_id: string; message: AgentMessage; revision: number; origin?: JsonObject; timestamp: number;
  };
  'session::status-changed': {
    session_id: string; status: SessionStatus; previous_status: SessionStatus; status_reason?: string; timestamp: number;
  };
  'session::meta-updated': { session_id: string; title: string; description: string; metadata?: JsonObject; timestamp: number };
  'session::deleted': { session_id: string; timestamp: number };
}
export type SessionEventType = keyof SessionEvents;
/** An event with its type, as the outbox keeps it. */
export type SessionEvent = { [T in SessionEventType]: { type: T; payload: SessionEvents[T] } }[SessionEventType];
