import type { TurnRecord } from '#libs/turn';

export interface TurnRow {
  session_id: string;
  turn_id: string;
  /** The version in force; a takeover raises it without rewriting the record. */
  version: number;
  claims: number;
  status: string;
  record: string;
  job_step: number | null;
  not_before: number;
  owner: string | null;
  expires_at: number | null;
  /** The session at the root of a sub-agent's tree. */
  root: string | null;
}

/** A turn's row without its record; `held` is 1 when calls of it wait for a person. */
export interface TurnHead extends Omit<TurnRow, 'record'> {
  held: 0 | 1;
}

export const recordOf = (row: TurnRow): TurnRecord => ({
  ...(JSON.parse(row.record) as TurnRecord),
  version: row.version,
  claims: row.claims,
});

/** When the first pending call of a turn times out; null when none does. */
export function earliestExpiry(record: TurnRecord): number | null {
  let earliest: number | null = null;
  for (const call of record.calls) {
    if (call.state !== 'pending' || call.expires_at === undefined) continue;
    if (earliest === null || call.expires_at < earliest) earliest = call.expires_at;
  }
  return earliest;
}
