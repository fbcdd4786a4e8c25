import type { Entry } from '#libs/contracts';
import { COMPACTION } from '#libs/turn';

/** Where the entries begin that a summary does not cover; null = after the entry that holds it, undefined for any other entry. */
export function tailStart(entry: Entry): string | null | undefined {
  if (entry.kind !== 'custom' || entry.custom_type !== COMPACTION) return undefined;
  const { data } = entry;
  const tail = typeof data === 'object' && data !== null && !Array.isArray(data) ? data['tail_start_entry_id'] : null;
  return typeof tail === 'string' ? tail : null;
}

/**
 * The window of a path: the latest summary, then the entries that it does not cover. One whose tail is nowhere on the path
 * stands for nothing: then the window is the whole path.
 */
export function windowOf(path: Entry[]): Entry[] {
  const at = path.findLastIndex((entry) => tailStart(entry) !== undefined);
  const compaction = path[at];
  if (compaction === undefined) return path;
  const tail = tailStart(compaction);
  const from = tail === null ? at : path.findIndex((entry) => entry.id === tail);
  if (from < 0) return path;
  return [compaction, ...path.slice(from).filter((entry) => entry !== compaction)];
}
