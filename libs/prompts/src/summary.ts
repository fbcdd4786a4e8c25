import { text } from './texts.js';

/** The system prompt of a request that has the older part of a conversation summed up. */
export const compactionPrompt = (): string => text('compaction');

/** A system prompt with the notes on the older part of the conversation at its end; blank notes add nothing. */
export function withSummary(systemPrompt: string, summary: string | null): string {
  if (summary === null || summary.trim() === '') return systemPrompt;
  const notes = summary.trim().replaceAll(/<(?=\/?notes>)/gi, '&lt;'); // their end is where we say
  const section = `${text('summary-section')}\n\n<notes>\n${notes}\n</notes>`;
  return systemPrompt === '' ? section : `${systemPrompt}\n\n${section}`;
}
