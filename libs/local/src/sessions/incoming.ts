import { type AgentMessage, type ContentBlock, HarnessError, type JsonObject, type JsonValue, newEntryId } from '#libs/contracts';
import type { NewEntry } from '#libs/turn';

/** A message as a caller may give it: results may lack `details` and `is_error`, calls their arguments. */
export type IncomingMessage = Omit<AgentMessage, 'details' | 'is_error'> & { details?: JsonValue; is_error?: boolean };

/** Makes a message complete, with well-formed text in it. */
export function acceptMessage(message: IncomingMessage): AgentMessage {
  const whole = { ...message, content: acceptContent(message.content) } as AgentMessage;
  if (whole.role !== 'function_result') return whole;
  return { ...whole, details: acceptJson(message.details ?? null), is_error: message.is_error ?? false };
}

/** Makes content complete, with well-formed text in it. */
export const acceptContent = (content: readonly ContentBlock[]): ContentBlock[] =>
  content.map((block): ContentBlock => {
    switch (block.type) {
      case 'text':
      case 'thinking':
        return block.text.isWellFormed() ? block : { ...block, text: block.text.toWellFormed() };
      case 'function_call':
        return { ...block, arguments: acceptJson(block.arguments ?? null) };
      case 'function_result':
        return { ...block, content: acceptContent(block.content) };
      case 'image':
      case 'redacted_thinking':
        return block;
      default: {
        const unknown: never = block;
        throw new HarnessError('session/invalid_request', `content has an unknown block ${JSON.stringify(unknown)}`);
      }
    }
  });

/** What an append names: one of a message and custom data. */
export interface IncomingEntry {
  entry_id?: string | null;
  message?: IncomingMessage | null;
  custom?: { custom_type: string; data?: JsonValue } | null;
  origin?: JsonObject | null;
}

/** Makes an entry to store; throws `session/invalid_request` unless there is exactly one of `message` and `custom`. */
export function acceptEntry(given: IncomingEntry, now: number): NewEntry {
  const base = { entry_id: given.entry_id ?? newEntryId(), timestamp: now, ...(given.origin == null ? {} : { origin: given.origin }) };
  if (given.message != null && given.custom == null) return { ...base, message: acceptMessage(given.message) };
  if (given.custom != null && given.message == null) {
    return { ...base, custom: { custom_type: given.custom.custom_type, data: acceptJson(given.custom.data ?? null) } };
  }
  throw new HarnessError('session/invalid_request', 'exactly one of message and custom must be given');
}

function acceptJson(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed();
  if (Array.isArray(value)) return value.map(acceptJson);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), acceptJson(item)]));
  return value;
}
