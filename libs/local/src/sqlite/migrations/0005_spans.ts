/** The finished spans of turns, a row for those of one turn that were stored together. */
export const spans = `
CREATE TABLE spans (
  seq INTEGER PRIMARY KEY,
  trace_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX spans_by_trace ON spans (trace_id);
CREATE INDEX spans_by_turn ON spans (turn_id);
`;
