import type { AgentMessage, AssistantMessage, ContentBlock, FunctionCallBlock, JsonValue } from '#libs/contracts';
import { boundImages, type ImageLimits, type ImagePart, type TextPart } from './images.js';
import { type FoundResult, pairResults } from './pairing.js';

/** What a person, the harness or a function says to the model. */
export type SaidPart = TextPart | ImagePart;
/** The result of one call. `content` is never empty. */
export interface ResultPart {
  call_id: string;
  function_id: string;
  content: SaidPart[];
  is_error: boolean;
}
export type AssistantPart =
  | TextPart
  | { type: 'thinking'; text: string; signature: string }
  | { type: 'redacted_thinking'; data: string }
  | { type: 'call'; id: string; function_id: string; arguments: JsonValue };

/** One turn of a request: user and assistant alternate, the user begins and ends, results follow their calls at once. */
export type Turn = { role: 'user'; results: ResultPart[]; content: SaidPart[] } | { role: 'assistant'; parts: AssistantPart[] };

export interface HistoryOptions {
  provider: string;
  model: string;
  images: ImageLimits;
}

/** Stands for a result without content: vendors refuse empty ones. */
export const EMPTY_RESULT = '(no output)';
/** Stands for a result that is not in the history. */
export const MISSING_RESULT = 'No result was recorded for this call. It may or may not have run.';
/** What the user says where the protocol needs a user and there is none. */
export const CONTINUE = 'Continue.';

/**
 * Makes a request's turns of a transcript. Blank texts go, an orphaned call gets a result, a stray result becomes text,
 * neighbours of the same role merge, and thinking stays only where its vendor can verify it.
 */
export function turnsOf(messages: readonly AgentMessage[], options: HistoryOptions): Turn[] {
  const results = pairResults(messages);
  const turns: Turn[] = [];
  const user = (): Extract<Turn, { role: 'user' }> => {
    const last = turns.at(-1);
    if (last?.role === 'user') return last;
    const turn: Turn = { role: 'user', results: [], content: [] };
    turns.push(turn);
    return turn;
  };
  for (const [index, message] of messages.entries()) {
    switch (message.role) {
      case 'user':
      case 'custom':
      case 'function_result': {
        const direct = message.role === 'function_result' ? [] : said(message.content);
        const parts = [...direct, ...(results.stray.get(index) ?? []).flatMap(strayText)];
        if (parts.length > 0) user().content.push(...parts);
        break;
      }
      case 'assistant':
        addAssistant(message, results.byMessage.get(index) ?? [], turns, user, options);
        break;
      default:
        message satisfies never;
    }
  }
  if (turns[0]?.role !== 'user') turns.unshift({ role: 'user', results: [], content: [{ type: 'text', text: CONTINUE }] });
  if (turns.at(-1)?.role === 'assistant') user().content.push({ type: 'text', text: CONTINUE });
  boundImages(turns, options.images);
  return turns;
}

function addAssistant(
  message: AssistantMessage,
  results: readonly FoundResult[],
  turns: Turn[],
  user: () => Extract<Turn, { role: 'user' }>,
  options: HistoryOptions,
): void {
  const parts = assistantParts(message, results, options);
  if (parts.length === 0) return;
  const last = turns.at(-1);
  if (last?.role === 'assistant') last.parts.push(...parts);
  else turns.push({ role: 'assistant', parts });
  for (const { call, wire_id, result } of results) {
    const content = result === undefined ? [] : said(result.content);
    user().results.push({
      call_id: wire_id,
      function_id: call.function_id,
      content:
        result === undefined
          ? [{ type: 'text', text: MISSING_RESULT }]
          : content.length === 0
            ? [{ type: 'text', text: EMPTY_RESULT }]
            : content,
      is_error: result === undefined || result.is_error,
    });
  }
}

function assistantParts(message: AssistantMessage, results: readonly FoundResult[], options: HistoryOptions): AssistantPart[] {
  const withThinking = thinkingIsIntact(message, results, options);
  const parts: AssistantPart[] = [];
  let calls = 0;
  for (const block of message.content) {
    switch (block.type) {
      case 'text':
        if (block.text.trim() !== '') parts.push({ type: 'text', text: wellFormed(block.text) });
        break;
      case 'thinking':
        if (withThinking) parts.push({ type: 'thinking', text: block.text, signature: block.signature ?? '' });
        break;
      case 'redacted_thinking':
        if (withThinking) parts.push({ type: 'redacted_thinking', data: block.data });
        break;
      case 'function_call':
        parts.push({ type: 'call', id: results[calls]?.wire_id ?? block.id, function_id: block.function_id, arguments: block.arguments });
        calls += 1;
        break;
      case 'image':
      case 'function_result':
        break; // an assistant says neither to a vendor
      default:
        block satisfies never;
    }
  }
  return parts.some((part) => part.type === 'text' || part.type === 'call') ? parts : [];
}

/**
 * Thinking goes back byte for byte or not at all: only to the model that wrote it, only when every block of it is signed,
 * and only when the message ended by itself, ends with what the thinking led to, and needs no repair.
 */
function thinkingIsIntact(message: AssistantMessage, results: readonly FoundResult[], { provider, model }: HistoryOptions): boolean {
  if (message.provider !== provider || message.model !== model) return false;
  if (message.stop_reason === 'error' || message.stop_reason === 'aborted') return false;
  if (results.some(({ call, result, wire_id }) => result === undefined || wire_id !== call.id || !isObject(call.arguments))) return false;
  const last = message.content.at(-1);
  if (last?.type === 'thinking' || last?.type === 'redacted_thinking') return false;
  return message.content.every((block) => {
    if (block.type === 'thinking') return typeof block.signature === 'string' && block.signature !== '';
    return block.type !== 'text' || block.text.trim() !== '';
  });
}

/** The texts and images of some content that are worth sending. */
function said(content: readonly ContentBlock[]): SaidPart[] {
  const parts: SaidPart[] = [];
  for (const block of content) {
    if (block.type === 'text' && block.text.trim() !== '') parts.push({ type: 'text', text: wellFormed(block.text) });
    if (block.type === 'image') parts.push({ type: 'image', mime: block.mime.toLowerCase(), data: block.data.replace(/^data:[^,]*,/, '') });
  }
  return parts;
}

function strayText({ function_id, content }: { function_id?: string; content: readonly ContentBlock[] }): SaidPart[] {
  const parts = said(content);
  if (parts.length === 0) return [];
  return [{ type: 'text', text: `A result of ${function_id ?? 'an earlier call'}, whose call is no longer in view:` }, ...parts];
}

/** Arguments in the only form that a vendor takes, an object. Text that did not parse is kept under `_unparsed`. */
export function argumentsObject(value: FunctionCallBlock['arguments']): { [key: string]: JsonValue } {
  if (isObject(value)) return value;
  return typeof value === 'string' ? { _unparsed: value } : { value };
}

const isObject = (value: JsonValue): value is { [key: string]: JsonValue } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `text` with halves of surrogate pairs replaced: no vendor takes those. */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, '\uFFFD');
