/** Finds the latest summary of a session, however long that has become. */
export const compactions = `
CREATE INDEX entries_compactions ON entries (sid, seq) WHERE custom_type = 'compaction';
`;
