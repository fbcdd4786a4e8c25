import { type AgentMessage, callsOf, type Entry, type FunctionCallBlock, type FunctionResultMessage } from '#libs/contracts';

/** The messages of a conversation in the order that every model accepts, and the call ids in it. */
export interface WireMessages {
  messages: AgentMessage[];
  callIds: ReadonlySet<string>;
}

interface Settled {
  next: number;
  messages: AgentMessage[];
  callIds: Set<string>;
}

/** What was built of a window before; a window only grows while its array stays the same. */
const settledOf = new WeakMap<readonly Entry[], Settled>();

/**
 * Builds the messages for a model: each assistant message with calls is followed at once by all its results, in call
 * order; a missing result gets a synthetic `is_error` one, a result without its call is left out, and so is what no
 * model may see (custom entries and messages, empty assistant messages). `skip` names an entry that is being generated
 * again. The cost is that of what is new since the last build of the same window.
 */
export function wireMessages(window: readonly Entry[], skip?: string): WireMessages {
  const known = settledOf.get(window) ?? { next: 0, messages: [], callIds: new Set<string>() };
  const end = settledEnd(window, known.next, skip);
  build(window, known.next, end, known.messages, known.callIds, skip);
  settledOf.set(window, { next: end, messages: known.messages, callIds: known.callIds });
  if (end === window.length) return { messages: known.messages.slice(), callIds: known.callIds };
  const messages = known.messages.slice();
  const callIds = new Set(known.callIds);
  build(window, end, window.length, messages, callIds, skip);
  return { messages, callIds };
}

/** How far a window is settled: nothing before it can still get a result or change. */
function settledEnd(window: readonly Entry[], from: number, skip: string | undefined): number {
  let end = from;
  const open = new Set<string>();
  for (let index = from; index < window.length; index += 1) {
    const entry = window[index];
    if (entry === undefined || entry.id === skip) break;
    if (entry.kind === 'message' && entry.message.role === 'assistant')
      for (const call of callsOf(entry.message.content)) open.add(call.id);
    if (entry.kind === 'message' && entry.message.role === 'function_result') open.delete(entry.message.function_call_id);
    // An assistant entry at the end may still be streaming; it settles when something follows it.
    const mayChange = index === window.length - 1 && entry.kind === 'message' && entry.message.role === 'assistant';
    if (open.size === 0 && !mayChange) end = index + 1;
  }
  return end;
}

function build(
  window: readonly Entry[],
  from: number,
  to: number,
  out: AgentMessage[],
  callIds: Set<string>,
  skip: string | undefined,
): void {
  const results = resultsIn(window, from, to, skip);
  for (let index = from; index < to; index += 1) {
    const entry = window[index];
    if (entry?.kind !== 'message' || entry.id === skip) continue;
    const { message } = entry;
    switch (message.role) {
      case 'user':
        out.push(message);
        break;
      case 'assistant': {
        const calls = callsOf(message.content);
        if (calls.length === 0 && !hasSubstance(message.content)) break;
        out.push(message);
        for (const call of calls) {
          callIds.add(call.id);
          out.push(results.get(call) ?? missingResult(call, message.timestamp));
        }
        break;
      }
      case 'function_result':
      case 'custom':
        break;
      default: {
        const unknown: never = message;
        throw new Error(`unknown message ${JSON.stringify(unknown)}`);
      }
    }
  }
}

/** The result of each call: the first one that comes after it and before its id is used again. */
function resultsIn(
  window: readonly Entry[],
  from: number,
  to: number,
  skip: string | undefined,
): Map<FunctionCallBlock, FunctionResultMessage> {
  const results = new Map<FunctionCallBlock, FunctionResultMessage>();
  const open = new Map<string, FunctionCallBlock>();
  for (let index = from; index < to; index += 1) {
    const entry = window[index];
    if (entry?.kind !== 'message' || entry.id === skip) continue;
    const { message } = entry;
    if (message.role === 'assistant') for (const call of callsOf(message.content)) open.set(call.id, call);
    if (message.role !== 'function_result') continue;
    const call = open.get(message.function_call_id);
    if (call !== undefined && !results.has(call)) results.set(call, message);
  }
  return results;
}

const hasSubstance = (content: AgentMessage['content']): boolean =>
  content.some((block) => block.type !== 'text' || block.text.trim() !== '');

const missingResult = (call: FunctionCallBlock, timestamp: number): FunctionResultMessage => ({
  role: 'function_result',
  function_call_id: call.id,
  function_id: call.function_id,
  content: [{ type: 'text', text: 'There is no result of this call: it was interrupted. It may have run.' }],
  details: { error: 'result_missing' },
  is_error: true,
  timestamp,
});

/** True when a user message comes after the entry `watermark` of the window (null: after nothing). Position decides. */
export function userAfter(window: readonly Entry[], watermark: string | null): boolean {
  for (let index = window.length - 1; index >= 0; index -= 1) {
    const entry = window[index];
    if (entry === undefined || entry.id === watermark) return false;
    if (entry.kind === 'message' && entry.message.role === 'user') return true;
  }
  return false;
}
