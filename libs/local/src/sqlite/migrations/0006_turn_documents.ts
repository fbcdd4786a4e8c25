/** Turns whose conversation another worker keeps: one document for each session. */
export const turnDocuments = `
CREATE TABLE turn_documents (
  session_id TEXT PRIMARY KEY,
  open INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_documents_open ON turn_documents (session_id) WHERE open = 1;
`;
