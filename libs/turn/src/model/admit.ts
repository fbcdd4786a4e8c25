import type { AssistantMessage, ContentBlock, ErrorKind, JsonValue, StopReason, Usage } from '#libs/contracts';
import { wellFormed } from './text.js';

/** Arguments that nest deeper than this are not taken. */
const MAX_DEPTH = 200;
const STOP_REASONS: ReadonlySet<unknown> = new Set<StopReason>(['end', 'length', 'function_call', 'aborted', 'error']);
const ERROR_KINDS: ReadonlySet<unknown> = new Set<ErrorKind>([
  'auth_expired',
  'rate_limited',
  'context_overflow',
  'transient',
  'permanent',
]);

/** What a message says of itself when its provider does not. */
export interface MessageDefaults {
  model: string;
  provider: string;
  /** Ms since the epoch. */
  now: number;
}

/** A message of a provider that can be stored and acted upon, or what is wrong with it. */
export type Admission = { message: AssistantMessage } | { fault: string };

/**
 * Takes a provider's message for what it is: a value from outside. What a block must have and has not makes the whole
 * message unusable, since a part of what a model meant is never acted upon; what only accompanies it is put right.
 * Blocks of unknown types and forged results are left out. Arguments that are no JSON, or nest without end, are handed on
 * as what a provider could not parse.
 */
export function admitMessage(value: unknown, defaults: MessageDefaults): Admission {
  if (!isObject(value) || !Array.isArray(value['content'])) return { fault: 'it has no content' };
  const content: ContentBlock[] = [];
  for (const [index, given] of value['content'].entries()) {
    const block = admitBlock(given);
    if (typeof block === 'string') return { fault: `content[${index}]${block}` };
    if (block !== null) content.push(block);
  }
  const calls = content.some((block) => block.type === 'function_call');
  const { stop_reason, error_kind } = value;
  const message: AssistantMessage = {
    role: 'assistant',
    content,
    stop_reason: STOP_REASONS.has(stop_reason) ? (stop_reason as StopReason) : calls ? 'function_call' : 'end',
    ...admitFacts(value, defaults),
  };
  if (ERROR_KINDS.has(error_kind)) message.error_kind = error_kind as ErrorKind;
  if (typeof value['error_message'] === 'string') message.error_message = wellFormed(value['error_message']);
  if (typeof value['native_stop_reason'] === 'string') message.native_stop_reason = wellFormed(value['native_stop_reason']);
  const warnings = value['warnings'];
  if (Array.isArray(warnings) && warnings.every((warning) => typeof warning === 'string')) message.warnings = warnings.map(wellFormed);
  return { message };
}

/** Who wrote a message, when, and at what cost. */
export function admitFacts(
  value: unknown,
  defaults: MessageDefaults,
): Pick<AssistantMessage, 'model' | 'provider' | 'timestamp' | 'usage'> {
  const { model, provider, timestamp, usage } = isObject(value) ? value : {};
  return {
    model: textOr(model, defaults.model),
    provider: textOr(provider, defaults.provider),
    timestamp: Number.isSafeInteger(timestamp) ? (timestamp as number) : defaults.now,
    usage: admitUsage(usage),
  };
}

/** The usable blocks of a message that is under way; what cannot be used is left out. */
export function admitPartial(value: unknown): ContentBlock[] {
  if (!isObject(value) || !Array.isArray(value['content'])) return [];
  return value['content'].map(admitBlock).filter((block): block is ContentBlock => typeof block === 'object' && block !== null);
}

/** Token counts of a provider; what is no count is not counted. */
export function admitUsage(value: unknown): Usage | null {
  if (!isObject(value)) return null;
  const usage: Usage = {};
  for (const field of ['input', 'output', 'cache_read', 'cache_write', 'reasoning', 'cost_usd'] as const) {
    const count = value[field];
    if (typeof count === 'number' && Number.isFinite(count) && count >= 0) usage[field] = count;
  }
  return usage;
}

/** A block; null when it is left out; else what is wrong with it. */
function admitBlock(value: unknown): ContentBlock | null | string {
  if (!isObject(value)) return ' is not a block';
  switch (value['type']) {
    case 'text':
      return typeof value['text'] === 'string' ? { type: 'text', text: value['text'] } : '.text must be a string';
    case 'thinking': {
      const { text, signature } = value;
      if (typeof text !== 'string') return '.text must be a string';
      return { type: 'thinking', text, ...(typeof signature === 'string' ? { signature } : {}) };
    }
    case 'redacted_thinking':
      return typeof value['data'] === 'string' ? { type: 'redacted_thinking', data: value['data'] } : '.data must be a string';
    case 'image': {
      const { data, mime } = value;
      return typeof data === 'string' && typeof mime === 'string' ? { type: 'image', data, mime } : '.data and .mime must be strings';
    }
    case 'function_call': {
      const { id, function_id } = value;
      if (typeof id !== 'string') return '.id must be a string';
      if (typeof function_id !== 'string') return '.function_id must be a string';
      return { type: 'function_call', id, function_id, arguments: admitArguments(value['arguments']) };
    }
    case 'function_result':
      return null; // no model has results to give
    default:
      return typeof value['type'] === 'string' ? null : '.type must be a string';
  }
}

/** Arguments as plain JSON; those that cannot be that are marked as a provider marks what it could not parse. */
function admitArguments(value: unknown): JsonValue {
  try {
    return plain(value, 0) ?? null;
  } catch (error) {
    return { _partial: true, _invalid: { error: error instanceof Error ? error.message : String(error) } };
  }
}

/** A value as JSON has it; undefined for what JSON leaves out. Throws for what has no end or no place in JSON. */
function plain(value: unknown, depth: number): JsonValue | undefined {
  if (depth > MAX_DEPTH) throw new Error(`the arguments nest deeper than ${MAX_DEPTH} levels`);
  switch (typeof value) {
    case 'string':
      return wellFormed(value);
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'undefined':
      return undefined;
    case 'object':
      break;
    default:
      throw new Error(`the arguments hold a ${typeof value}`);
  }
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1) ?? null);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return plain(toJSON.call(value), depth + 1);
  const entries = Object.entries(value).map(([key, item]) => [wellFormed(key), plain(item, depth + 1)] as const);
  return Object.fromEntries(entries.filter((entry): entry is readonly [string, JsonValue] => entry[1] !== undefined));
}

const textOr = (value: unknown, otherwise: string): string => (typeof value === 'string' && value !== '' ? value : otherwise);
const isObject = (value: unknown): value is { [key: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
