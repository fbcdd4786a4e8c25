import { type FunctionResultMessage, textOf } from '#libs/contracts';
import type { DiskEntry, DiskSession } from './disk.js';
import { resultsOf } from './invariants.js';

/** What a conversation looks like: `user: hello`, `assistant: hi [c1]`, `c1 ok: text`, `c1 failed(policy_denied): text`, `(notice)`. */
export function lines(entries: readonly DiskEntry[]): string[] {
  return entries.map(({ message, custom }) => {
    if (message === null) return `(${custom?.type})`;
    if (message.role === 'function_result') return resultLine(message);
    const calls = message.content.flatMap((block) => (block.type === 'function_call' ? [`[${block.id}]`] : []));
    return `${message.role}: ${[textOf(message.content), ...calls].filter((part) => part !== '').join(' ')}`;
  });
}

function resultLine(message: FunctionResultMessage): string {
  const { details } = message;
  const code =
    typeof details === 'object' && details !== null && !Array.isArray(details) && typeof details['error'] === 'string'
      ? `(${details['error']})`
      : '';
  return `${message.function_call_id} ${message.is_error ? 'failed' : 'ok'}${code}: ${textOf(message.content)}`;
}

/** The one result of a session's call. */
export function resultOf(session: DiskSession, callId: string): FunctionResultMessage {
  const result = resultsOf(session.entries).get(callId);
  if (result === undefined) throw new Error(`call ${callId} has no result: ${lines(session.entries).join(' | ')}`);
  return result;
}
