/** Sessions, turns with their queue, and what belongs to them. */
export const initial = `
CREATE TABLE sessions (
  sid INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  description TEXT NOT NULL,
  status TEXT NOT NULL,
  status_reason TEXT,
  metadata TEXT,
  forked_from TEXT,
  draft TEXT,
  message_count INTEGER NOT NULL DEFAULT 0,
  leaf TEXT,
  last_seq INTEGER NOT NULL DEFAULT 0,
  rev INTEGER NOT NULL DEFAULT 0,
  branched INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_at);

CREATE TABLE entries (
  sid INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  entry_id TEXT NOT NULL,
  parent_id TEXT,
  role TEXT,
  custom_type TEXT,
  revision INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  origin TEXT,
  body TEXT NOT NULL,
  PRIMARY KEY (sid, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entries_by_id ON entries (sid, entry_id);

CREATE TABLE turns (
  session_id TEXT PRIMARY KEY,
  turn_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  claims INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL,
  record TEXT NOT NULL,
  job_step INTEGER,
  not_before INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_queued ON turns (not_before) WHERE job_step IS NOT NULL;
CREATE INDEX turns_expiring ON turns (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE parked (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (session_id, entry_id)
) STRICT;

CREATE TABLE idempotency (
  key TEXT PRIMARY KEY,
  answer TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  owner TEXT NOT NULL,
  type TEXT NOT NULL,
  payload TEXT NOT NULL
) STRICT;

CREATE TABLE processes (
  owner TEXT PRIMARY KEY,
  pid INTEGER NOT NULL,
  start_token TEXT NOT NULL,
  host_token TEXT NOT NULL,
  lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  receipt TEXT NOT NULL UNIQUE,
  queue TEXT NOT NULL,
  group_key TEXT,
  function_id TEXT NOT NULL,
  payload TEXT NOT NULL,
  metadata TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  dead INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_by_owner ON jobs (owner, id) WHERE dead = 0;
CREATE INDEX jobs_by_group ON jobs (queue, group_key, id) WHERE dead = 0 AND group_key IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (queue, id) WHERE dead = 1;

CREATE TABLE queues (
  name TEXT PRIMARY KEY,
  config TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE state (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
`;
