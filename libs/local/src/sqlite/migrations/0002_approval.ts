/** Calls that wait for a person's approval, the settings of that, and of each sub-agent's session the one at the root of its tree. */
export const approval = `
CREATE TABLE approvals (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  function_call_id TEXT NOT NULL,
  function_id TEXT NOT NULL,
  arguments_excerpt TEXT NOT NULL,
  depth INTEGER NOT NULL,
  pending_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE (session_id, function_call_id)
) STRICT;

CREATE TABLE approval_settings (
  session_id TEXT PRIMARY KEY,
  mode TEXT,
  mode_set_at INTEGER NOT NULL,
  always_allow TEXT NOT NULL,
  approved_always TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE turns ADD COLUMN root TEXT;
WITH RECURSIVE above (id, ancestor) AS (
  SELECT session_id, json_extract(record, '$.parent.session_id') FROM turns WHERE json_extract(record, '$.parent.session_id') IS NOT NULL
  UNION
  SELECT above.id, json_extract(turns.record, '$.parent.session_id') FROM above JOIN turns ON turns.session_id = above.ancestor
  WHERE json_extract(turns.record, '$.parent.session_id') IS NOT NULL
)
UPDATE turns SET root = (
  SELECT ancestor FROM above WHERE id = session_id AND ancestor NOT IN (SELECT id FROM above)
);
CREATE INDEX turns_by_root ON turns (root) WHERE root IS NOT NULL;
`;
