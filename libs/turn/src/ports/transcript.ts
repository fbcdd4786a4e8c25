import type { Entry } from '#libs/contracts';

/** Reads the stored conversation. */
export interface Transcript {
  /**
   * The entries that a model may need, oldest first: those of the active path; when there is a compaction entry on it, the latest
   * one stands first, followed by what it does not cover. Costs what the window holds, however long the session is. The array
   * is the caller's to read, not to change. Reading it again after a small change costs in proportion to the change.
   */
  window(sessionId: string): Promise<readonly Entry[]>;
  /** One entry, or null. */
  entry(sessionId: string, entryId: string): Promise<Entry | null>;
}
/** Injection token of the `Transcript`. */
export const TRANSCRIPT = Symbol('harness:transcript');
