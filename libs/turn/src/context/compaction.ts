import { type AgentMessage, type AssistantMessage, callsOf, type Entry, entryIds, type JsonObject } from '#libs/contracts';
import type { Transcript } from '../ports/transcript.js';
import type { TurnRecord } from '../record/record.js';

/** The type of the custom entry that holds the summary of what lies before a window. */
export const COMPACTION = 'compaction';

/** What a compaction entry holds. Tokens are estimates. */
export interface CompactionData extends JsonObject {
  summary: string;
  /** The first entry that the summary does not cover; null = the window begins after the compaction entry. */
  tail_start_entry_id: string | null;
  /** Tokens of what the summary stands for, under two names. */
  tokens_before: number;
  summarized_head_tokens: number;
  /** Tokens of the request before, and of the one with the summary. */
  initial_token_count: number;
  assembled_token_count: number;
  usable_input_tokens: number;
  effective_max_output_tokens: number;
}

/** The compaction entry of a window: it stands first where there is one. */
export function compactionOf(window: readonly Entry[]): { id: string; summary: string } | null {
  const first = window[0];
  if (first?.kind !== 'custom' || first.custom_type !== COMPACTION) return null;
  const { data } = first;
  const summary = typeof data === 'object' && data !== null && !Array.isArray(data) ? data['summary'] : undefined;
  return { id: first.id, summary: typeof summary === 'string' ? summary : '' };
}

/** The id of the entry of a window that holds `message`; undefined for a message that the loop has made up. */
export const entryOf = (window: readonly Entry[], message: AgentMessage | undefined): string | undefined =>
  window.find((entry) => entry.kind === 'message' && entry.message === message)?.id;

/**
 * Ids of the calls of a message that earlier calls of its turn had, of which a window that begins with a summary tells nothing: they
 * are taken, since a result is stored under the id of its call.
 */
export async function answeredBefore(
  transcript: Transcript,
  { session_id, turn_id }: TurnRecord,
  window: readonly Entry[],
  message: AssistantMessage,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  if (compactionOf(window) === null) return found;
  for (const { id } of callsOf(message.content))
    if ((await transcript.entry(session_id, entryIds.result(turn_id, id))) !== null) found.add(id);
  return found;
}
