import type { Entry, SessionEvent } from '#libs/contracts';

/** What one commit did to a session's entries, for caches. */
export interface EntryChange {
  session_id: string;
  /** Names the stored session; a later one of the same id has another. */
  sid: number;
  /** Revision of the session before and after. */
  from: number;
  to: number;
  entry: Entry;
  /** Appended at the leaf, replaced in place, or anything else (then a cache must read again). */
  how: 'appended' | 'replaced' | 'other';
}

/** What a commit changed: told to caches and listeners once it is durable. */
export class ChangeLog {
  readonly events: SessionEvent[] = [];
  readonly entries: EntryChange[] = [];
}
