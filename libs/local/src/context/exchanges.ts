import { type AgentMessage, callsOf } from '#libs/contracts';

/**
 * Where a conversation may be cut: the indexes of messages that nothing before them still belongs to. A call and its results are
 * never parted.
 */
export function cutPoints(messages: readonly AgentMessage[]): number[] {
  const lastResult = new Map<string, number>();
  for (const [index, message] of messages.entries())
    if (message.role === 'function_result') lastResult.set(message.function_call_id, index);
  const points: number[] = [];
  let openUntil = -1;
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'function_result' && index > openUntil) points.push(index);
    if (message.role === 'assistant')
      for (const call of callsOf(message.content)) openUntil = Math.max(openUntil, lastResult.get(call.id) ?? -1);
  }
  return points;
}

/** What is to be left as it is at the end of a conversation. Tokens. */
export interface TailWish {
  /** Turns, each from a user message on. */
  turns: number;
  /** What the tail takes at most by choice, and what there is room for. */
  preserve: number;
  room: number;
}

/** A wish for turns counts up to this part of the room: else the next summary would come at once. */
const TURNS_PART = 0.6;

/**
 * Where the tail begins that a summary leaves as it is: the wanted turns, and more where they fit; fewer where they do not,
 * down to the last exchange. At the length of the conversation when nothing is wanted.
 */
export function tailStart(messages: readonly AgentMessage[], sums: readonly number[], { turns, preserve, room }: TailWish): number {
  const end = messages.length;
  if (turns === 0 && preserve === 0) return end;
  const tokens = (from: number): number => (sums[end] ?? 0) - (sums[from] ?? 0);
  const points = cutPoints(messages);
  const users = points.filter((point) => messages[point]?.role === 'user');
  const wanted = turns === 0 ? undefined : users[Math.max(0, users.length - turns)];
  const fitting = users.find((point) => tokens(point) <= preserve);
  const chosen = [fitting, wanted !== undefined && tokens(wanted) <= room * TURNS_PART ? wanted : undefined].filter((p) => p !== undefined);
  if (chosen.length > 0) return Math.min(...chosen);
  return points.find((point) => tokens(point) <= preserve) ?? points.at(-1) ?? 0;
}
