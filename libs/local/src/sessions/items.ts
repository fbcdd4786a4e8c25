import type { AgentMessage, ContentBlock, Entry, JsonObject, JsonValue, MessageItem } from '#libs/contracts';
import { type EntryRow, entryOf } from './rows.js';

/** An image that was also stored apart, under `attachment_id`. */
type StoredImage = Extract<ContentBlock, { type: 'image' }> & { attachment_id?: string | null };

/** Leaves out the data of images that a reader can fetch by their attachment; others stay. */
const withoutImages = (content: readonly ContentBlock[]): ContentBlock[] =>
  content.map((block): ContentBlock => {
    if (block.type === 'function_result') return { ...block, content: withoutImages(block.content) };
    return block.type === 'image' && (block as StoredImage).attachment_id != null ? { ...block, data: '' } : block;
  });

/** An entry as `session::get-message` gives it. */
export const shownEntry = (entry: Entry, images: boolean): Entry =>
  entry.kind === 'message' && !images ? { ...entry, message: { ...entry.message, content: withoutImages(entry.message.content) } } : entry;

/** A row as an item of a page. */
export function itemOf(row: EntryRow, images: boolean): MessageItem {
  const entry = shownEntry(entryOf(row), images);
  if (entry.kind === 'custom') return { entry_id: entry.id, custom: { custom_type: entry.custom_type, data: entry.data } };
  return { entry_id: entry.id, message: entry.message, ...(entry.origin === undefined ? {} : { origin: entry.origin }) };
}

/** True for an entry that is part of the work on a reply: a message with calls, or a result. */
export function isActivity({ message }: MessageItem): boolean {
  if (message?.role === 'function_result') return true;
  return message?.role === 'assistant' && message.content.some((block) => block.type === 'function_call');
}

/** The item without its heavy parts; the whole one can be had from `session::messages-range`. */
export const elidedItem = (item: MessageItem): MessageItem =>
  item.message === undefined ? item : { ...item, message: elidedMessage(item.message), elided: true };

function elidedMessage(message: AgentMessage): AgentMessage {
  if (message.role === 'function_result') return { ...message, content: [], details: null };
  const content = message.content.flatMap((block): ContentBlock[] => {
    if (block.type === 'thinking' || block.type === 'redacted_thinking') return [];
    return [block.type === 'function_call' ? { ...block, arguments: elidedArguments(block.function_id, block.arguments) } : block];
  });
  return { ...message, content };
}

/** A wrapped call keeps its target and what it said that it does. */
function elidedArguments(functionId: string, value: JsonValue): JsonObject {
  if (functionId !== 'agent_trigger' || typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(['function', 'description'].flatMap((key) => (typeof value[key] === 'string' ? [[key, value[key]]] : [])));
}
