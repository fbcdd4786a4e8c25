/** Hooks of workers in other processes that deny while those are away, and where a process can be reached. */
export const guards = `
CREATE TABLE guards (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  function_id TEXT NOT NULL,
  config TEXT NOT NULL,
  metadata TEXT,
  worker TEXT NOT NULL,
  owned INTEGER NOT NULL,
  process TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE processes ADD COLUMN gateway TEXT;
`;
