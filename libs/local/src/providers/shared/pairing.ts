import type { AgentMessage, ContentBlock, FunctionCallBlock } from '#libs/contracts';

interface GivenResult {
  index: number;
  id: string;
  function_id?: string;
  content: readonly ContentBlock[];
  is_error: boolean;
}

/** A call of an assistant message with its result. `wire_id` is unique in the request. */
export interface FoundResult {
  call: FunctionCallBlock;
  wire_id: string;
  result: GivenResult | undefined;
}

export interface Pairing {
  /** By index of the assistant message, in call order. */
  byMessage: Map<number, FoundResult[]>;
  /** Results without a call, by index of the message that holds them. */
  stray: Map<number, GivenResult[]>;
}

/**
 * Gives every call its result: the first one with its id that comes after it and before the id is used again. A call id
 * that was used before gets a new one; a second result of the same call is dropped.
 */
export function pairResults(messages: readonly AgentMessage[]): Pairing {
  const given = new Map<string, GivenResult[]>();
  const uses = new Map<string, number[]>();
  for (const [index, message] of messages.entries()) {
    for (const result of resultsOf(message, index)) push(given, result.id, result);
    if (message.role === 'assistant') for (const call of calls(message.content)) push(uses, call.id, index);
  }
  const byMessage = new Map<number, FoundResult[]>();
  const taken = new Set<string>();
  const settled = new Set<GivenResult>();
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'assistant') continue;
    const found = calls(message.content).map((call): FoundResult => {
      const next = uses.get(call.id)?.find((use) => use > index) ?? Number.POSITIVE_INFINITY;
      const candidates = (given.get(call.id) ?? []).filter((result) => result.index > index && result.index < next);
      const result = candidates.find((candidate) => !settled.has(candidate));
      for (const candidate of candidates) settled.add(candidate);
      return { call, wire_id: unique(call.id, taken), result };
    });
    byMessage.set(index, found);
  }
  const stray = new Map<number, GivenResult[]>();
  for (const results of given.values()) for (const result of results) if (!settled.has(result)) push(stray, result.index, result);
  return { byMessage, stray };
}

const calls = (content: readonly ContentBlock[]): FunctionCallBlock[] =>
  content.filter((block): block is FunctionCallBlock => block.type === 'function_call');

function resultsOf(message: AgentMessage, index: number): GivenResult[] {
  if (message.role === 'function_result') {
    const { function_call_id: id, function_id, content, is_error } = message;
    return [{ index, id, function_id, content, is_error }];
  }
  if (message.role === 'assistant') return [];
  return message.content.flatMap((block) =>
    block.type === 'function_result'
      ? [{ index, id: block.function_call_id, content: block.content, is_error: block.is_error === true }]
      : [],
  );
}

function unique(id: string, taken: Set<string>): string {
  let name = id === '' ? 'call' : id;
  for (let n = 2; taken.has(name); n += 1) name = `${id === '' ? 'call' : id}_${n}`;
  taken.add(name);
  return name;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
