import type { SqliteConnection, SqliteStatement, SqliteWriter } from '../sqlite/index.js';
import type { PermissionMode } from './settings.js';

/** A function that is let pass without being asked about. */
export interface AllowedFunction {
  function_id: string;
  /** Ms since the epoch. */
  granted_at: number;
  granted_by: 'user_click';
}

/** The settings of a session. */
export interface SessionApproval {
  mode: PermissionMode;
  /** When the mode was set, ms since the epoch; 0 when it never was. */
  mode_set_at: number;
  /** Functions that `auto` lets pass. */
  always_allow: AllowedFunction[];
  /** Functions that every mode lets pass: decisions that were to be remembered. */
  approved_always: AllowedFunction[];
}

interface SettingsRow {
  session_id: string;
  mode: PermissionMode | null;
  mode_set_at: number;
  always_allow: string;
  approved_always: string;
}
type Lists = 'always_allow' | 'approved_always';

/**
 * The approval settings of sessions, on disk. A sub-agent's session goes by those of the session at the root of its tree:
 * its own mode comes first when it has one, and what either of them lets pass is let pass.
 */
export class SessionSettings {
  private readonly selectFor: SqliteStatement;
  private readonly selectOwn: SqliteStatement;
  private readonly selectRoot: SqliteStatement;
  private readonly upsert: SqliteStatement;
  private readonly remove: SqliteStatement;

  constructor(
    db: SqliteConnection,
    private readonly writer: SqliteWriter,
  ) {
    this.selectFor = db.prepare(
      'SELECT * FROM approval_settings WHERE session_id IN (@session, (SELECT root FROM turns WHERE session_id = @session))',
    );
    this.selectOwn = db.prepare('SELECT * FROM approval_settings WHERE session_id = ?');
    this.selectRoot = db.prepare('SELECT root FROM turns WHERE session_id = ?');
    this.upsert = db.prepare(
      `INSERT INTO approval_settings (session_id, mode, mode_set_at, always_allow, approved_always) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (session_id) DO UPDATE SET mode = excluded.mode, mode_set_at = excluded.mode_set_at,
         always_allow = excluded.always_allow, approved_always = excluded.approved_always`,
    );
    this.remove = db.prepare('DELETE FROM approval_settings WHERE session_id = ?');
  }

  /** What holds for a session where the configuration says `defaultMode`, and whether any of it is stored. */
  inForce(sessionId: string, defaultMode: PermissionMode): SessionApproval & { stored: boolean } {
    const rows = this.selectFor.all({ session: sessionId }) as SettingsRow[];
    if (rows.length === 0) return { mode: defaultMode, mode_set_at: 0, always_allow: [], approved_always: [], stored: false };
    const byOwn = rows.sort((a) => (a.session_id === sessionId ? -1 : 1));
    const moded = byOwn.find((row) => row.mode !== null);
    return {
      mode: moded?.mode ?? defaultMode,
      mode_set_at: moded?.mode_set_at ?? 0,
      always_allow: byOwn.flatMap((row) => listOf(row, 'always_allow')),
      approved_always: byOwn.flatMap((row) => listOf(row, 'approved_always')),
      stored: true,
    };
  }

  /** The session whose settings those of this one come from: the root of its tree. */
  rootOf(sessionId: string): string {
    return (this.selectRoot.get(sessionId) as { root: string | null } | undefined)?.root ?? sessionId;
  }

  setMode(sessionId: string, mode: PermissionMode, now: number): Promise<void> {
    return this.change(sessionId, (row) => ({ ...row, mode, mode_set_at: now }));
  }

  /** Adds a function to a list, once. */
  add(sessionId: string, list: Lists, functionId: string, now: number): Promise<void> {
    return this.change(sessionId, (row) => {
      const known = listOf(row, list);
      if (known.some((entry) => entry.function_id === functionId)) return row;
      const granted: AllowedFunction = { function_id: functionId, granted_at: now, granted_by: 'user_click' };
      return { ...row, [list]: JSON.stringify([...known, granted]) };
    });
  }

  /** Takes a function off both lists. */
  withdraw(sessionId: string, functionId: string): Promise<void> {
    const without = (row: SettingsRow, list: Lists): string =>
      JSON.stringify(listOf(row, list).filter((entry) => entry.function_id !== functionId));
    return this.change(sessionId, (row) => ({
      ...row,
      always_allow: without(row, 'always_allow'),
      approved_always: without(row, 'approved_always'),
    }));
  }

  /** Forgets the settings of a session; false when it has none. */
  clear(sessionId: string): Promise<boolean> {
    return this.writer.submit(() => this.remove.run(sessionId).changes > 0, 'approval-clear');
  }

  private change(sessionId: string, change: (row: SettingsRow) => SettingsRow): Promise<void> {
    return this.writer.submit(() => {
      const before = (this.selectOwn.get(sessionId) as SettingsRow | undefined) ?? {
        session_id: sessionId,
        mode: null,
        mode_set_at: 0,
        always_allow: '[]',
        approved_always: '[]',
      };
      const { mode, mode_set_at, always_allow, approved_always } = change(before);
      this.upsert.run(sessionId, mode, mode_set_at, always_allow, approved_always);
    }, 'approval-settings');
  }
}

const listOf = (row: SettingsRow, list: Lists): AllowedFunction[] => JSON.parse(row[list]) as AllowedFunction[];
