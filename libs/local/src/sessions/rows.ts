import type { AgentMessage, Entry, JsonObject, JsonValue, SessionMeta, SessionStatus } from '#libs/contracts';

/** A row of `sessions`. */
export interface SessionRow {
  sid: number;
  session_id: string;
  title: string;
  description: string;
  status: SessionStatus;
  status_reason: string | null;
  metadata: string | null;
  forked_from: string | null;
  draft: string | null;
  message_count: number;
  leaf: string | null;
  last_seq: number;
  rev: number;
  /** 1 once the entries are a tree: then the active path is found by parents, not by order. */
  branched: number;
  created_at: number;
  updated_at: number;
}

/** A row of `entries`; those of one path are in order of `seq`, since a parent is always older. */
export interface EntryRow {
  seq: number;
  entry_id: string;
  parent_id: string | null;
  role: string | null;
  custom_type: string | null;
  revision: number;
  timestamp: number;
  origin: string | null;
  body: string;
}

const parsed = <T>(text: string | null): T | undefined => (text === null ? undefined : (JSON.parse(text) as T));

/** The public form of a session row. */
export function metaOf(row: SessionRow): SessionMeta {
  const metadata = parsed<JsonObject>(row.metadata);
  return {
    session_id: row.session_id,
    title: row.title,
    description: row.description,
    status: row.status,
    ...(row.status_reason === null ? {} : { status_reason: row.status_reason }),
    ...(metadata === undefined ? {} : { metadata }),
    message_count: row.message_count,
    created_at: row.created_at,
    updated_at: row.updated_at,
    ...(row.forked_from === null ? {} : { forked_from: row.forked_from }),
    ...(row.draft === null ? {} : { draft: row.draft }),
  };
}

/** The public form of an entry row. */
export function entryOf(row: EntryRow): Entry {
  const origin = parsed<JsonObject>(row.origin);
  const base = {
    id: row.entry_id,
    ...(row.parent_id === null ? {} : { parent_id: row.parent_id }),
    revision: row.revision,
    timestamp: row.timestamp,
    ...(origin === undefined ? {} : { origin }),
  };
  return row.custom_type === null
    ? { kind: 'message', ...base, message: JSON.parse(row.body) as AgentMessage }
    : { kind: 'custom', ...base, custom_type: row.custom_type, data: JSON.parse(row.body) as JsonValue };
}
