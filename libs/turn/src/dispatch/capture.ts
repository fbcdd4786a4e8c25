import type { ContentBlock, ImageBlock, JsonValue, TextBlock } from '#libs/contracts';
import type { CallResult } from '../machine/decision.js';
import { headOf, tailOf, wellFormed, wellFormedJson } from '../model/text.js';

/** What an empty result says to the model. */
const NO_OUTPUT = '(no output)';

/**
 * Turns whatever a function returned into a result: text and image blocks as they are, any other value as its JSON
 * text, always readable. A value that is an object is kept as `details` too.
 */
export function captureResult(value: unknown): CallResult {
  const json = toJson(value);
  const given = givenContent(json);
  if (given !== null) return given;
  const text = typeof json === 'string' ? json : JSON.stringify(json);
  const details = typeof json === 'object' ? json : null;
  return {
    content: [{ type: 'text', text: wellFormed(text.trim() === '' || value === undefined ? NO_OUTPUT : text) }],
    details,
    is_error: false,
  };
}

/** Objects and lists of one value that are read: an object that is shared in many places counts in each. */
const MAX_NODES = 200_000;

/** A value as JSON, whatever it is: what JSON cannot hold becomes text that says what it was. */
export function toJson(value: unknown): JsonValue {
  const seen = new WeakSet<object>();
  let left = MAX_NODES;
  const convert = (item: unknown): JsonValue => {
    switch (typeof item) {
      case 'string':
        return wellFormed(item);
      case 'boolean':
        return item;
      case 'number':
        return Number.isFinite(item) ? item : String(item);
      case 'bigint':
        return item.toString();
      case 'undefined':
        return null;
      case 'function':
      case 'symbol':
        return `[${typeof item}]`;
      case 'object':
        return item === null ? null : convertObject(item);
    }
  };
  const convertObject = (item: object): JsonValue => {
    if (seen.has(item)) return '[circular]';
    left -= 1;
    if (left < 0) return '[left out: the value has too many parts]';
    if (item instanceof Date) return Number.isNaN(item.getTime()) ? 'Invalid Date' : item.toISOString();
    if (item instanceof Error) return { error: item.message };
    if (ArrayBuffer.isView(item)) return { base64: Buffer.from(item.buffer, item.byteOffset, item.byteLength).toString('base64') };
    seen.add(item);
    try {
      if (Array.isArray(item)) return item.map(convert);
      if (item instanceof Map || item instanceof Set) return convert([...item]);
      const withToJson = item as { toJSON?: () => unknown };
      if (typeof withToJson.toJSON === 'function') return convert(withToJson.toJSON());
      return convertFields(item);
    } finally {
      seen.delete(item);
    }
  };
  const convertFields = (item: object): JsonValue => {
    const fields: { [key: string]: JsonValue } = {};
    for (const [key, field] of Object.entries(item)) {
      if (field === undefined) continue;
      if (key === '__proto__') Object.defineProperty(fields, key, { value: convert(field), enumerable: true });
      else fields[wellFormed(key)] = convert(field);
    }
    return fields;
  };
  return convert(value);
}

/** A result that brings its own content blocks: `{content: [text or image blocks], details?, is_error?}`. */
function givenContent(json: JsonValue): CallResult | null {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
  const { content, details, is_error, ...rest } = json;
  if (!Array.isArray(content) || content.length === 0 || !content.every(isBlock)) return null;
  const blocks = (content as unknown as (TextBlock | ImageBlock)[]).map(
    (block): ContentBlock => (block.type === 'text' && block.text.trim() === '' ? { type: 'text', text: NO_OUTPUT } : block),
  );
  return { content: blocks, details: details ?? (Object.keys(rest).length > 0 ? rest : null), is_error: is_error === true };
}

const isBlock = (block: JsonValue): boolean => {
  if (typeof block !== 'object' || block === null || Array.isArray(block)) return false;
  if (block['type'] === 'text') return typeof block['text'] === 'string';
  return block['type'] === 'image' && typeof block['data'] === 'string' && typeof block['mime'] === 'string';
};

/** Keeps a result under `maxBytes` of JSON (0 = no limit): the start and end of its text stay, with a mark in between. */
export function capResult(result: CallResult, maxBytes: number): CallResult {
  if (maxBytes === 0) return result;
  const limit = Math.max(1024, maxBytes);
  // Text that is too long by itself need not be written out as JSON to know that.
  const long = textBytes(result);
  const size = long > limit ? long : sizeOf(result);
  if (size <= limit) return result;
  const text = result.content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
  // A character is up to six bytes of JSON, so the room shrinks until the result fits.
  for (let room = Math.floor(limit / 4); ; room = Math.floor(room / 2)) {
    const content: ContentBlock[] = [{ type: 'text', text: headAndTail(text, room, size, limit) }];
    const capped = { content, details: { result_capped: { original_bytes: size, max_bytes: limit } }, is_error: result.is_error };
    if (room === 0 || sizeOf(capped) <= limit) return capped;
  }
}

const textBytes = ({ content }: CallResult): number =>
  content.reduce((sum, block) => sum + (block.type === 'text' ? Buffer.byteLength(block.text) : 0), 0);

const sizeOf = (result: CallResult): number => Buffer.byteLength(JSON.stringify([result.content, wellFormedJson(result.details)]));

function headAndTail(text: string, room: number, size: number, limit: number): string {
  const whole = text.length <= room * 2;
  const mark = omitted('result', size, limit, whole ? 'what is not text' : 'its middle');
  return whole ? `${mark}\n${wellFormed(text)}` : wellFormed(`${mark}\n${headOf(text, room)}\n[...]\n${tailOf(text, room)}`);
}

/** Keeps the message of an error within `max` characters, and a mark: its start and its end stay. */
export function capError(message: string, max: number): string {
  if (message.length <= max) return message;
  const room = Math.floor(max / 2);
  return `${omitted('error', message.length, max, 'its middle')}\n${headOf(message, room)}\n[...]\n${tailOf(message, room)}`;
}

const omitted = (what: string, size: number, limit: number, left: string): string =>
  `<omitted: the ${what} has ${Math.floor(size / 1024)} KB, the limit is ${Math.floor(limit / 1024)} KB; ${left} is left out here>`;
