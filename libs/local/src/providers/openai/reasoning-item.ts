import type OpenAI from 'openai';
import { parseJson } from '../shared/draft.js';

/** How a reasoning item is kept in a block's signature or data: all that is needed to send it back as it came. */
interface Kept {
  id: string;
  encrypted_content: string;
  summary: number[];
}
const MARK = 'openai-reasoning:';

/** Packs a finished reasoning item; undefined when the vendor gave no encrypted content, without which it cannot go back. */
export function keep(item: OpenAI.Responses.ResponseReasoningItem): string | undefined {
  if (!item.encrypted_content) return undefined;
  const kept: Kept = { id: item.id, encrypted_content: item.encrypted_content, summary: item.summary.map((part) => part.text.length) };
  return MARK + JSON.stringify(kept);
}

/** Rebuilds a reasoning item from its packed form and the text of its summary. */
export function restore(packed: string, text: string): OpenAI.Responses.ResponseReasoningItem | undefined {
  if (!packed.startsWith(MARK)) return undefined;
  const kept = parseJson(packed.slice(MARK.length)) as unknown as Kept | undefined;
  if (kept === undefined) return undefined;
  let at = 0;
  const summary = kept.summary.map((length) => {
    const part = text.slice(at, at + length);
    at += length + SEPARATOR.length;
    return { type: 'summary_text' as const, text: part };
  });
  return { type: 'reasoning', id: kept.id, encrypted_content: kept.encrypted_content, summary };
}

/** Stands between the parts of a summary. */
export const SEPARATOR = '\n\n';
