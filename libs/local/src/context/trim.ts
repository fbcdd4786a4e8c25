import type { AgentMessage } from '#libs/contracts';
import { messageTokens, userText } from '#libs/turn';
import { cutPoints } from './exchanges.js';

const LEFT_OUT = 'Earlier messages of this conversation are left out here: there is no room for them.';

/**
 * A conversation without its oldest exchanges, within `room` tokens where that can be; the last exchange stays in any case, and the
 * last thing that the person said where it fits. What is left out grows in steps of `step` tokens, so that the beginning stays
 * the same from one request to the next.
 */
export function trimmed(messages: readonly AgentMessage[], room: number, step: number): AgentMessage[] {
  const sums = [0];
  for (const message of messages) sums.push((sums.at(-1) ?? 0) + messageTokens(message));
  const total = sums[messages.length] ?? 0;
  const note = userText(LEFT_OUT, messages[0]?.timestamp ?? 0);
  const excess = total + messageTokens(note) - room;
  if (excess <= 0) return [...messages];
  const points = cutPoints(messages);
  const before = (point: number): number => sums[point] ?? 0;
  const start =
    points.find((point) => before(point) >= Math.ceil(excess / step) * step) ??
    points.find((p) => before(p) >= excess) ??
    points.at(-1) ??
    0;
  if (start === 0) return [...messages];
  const task = messages.findLastIndex((message, index) => message.role === 'user' && index < start);
  const kept = messages.slice(start);
  const said = messages[task];
  const needed =
    said !== undefined && kept[0]?.role !== 'user' && messageTokens(said) <= room - messageTokens(note) - (total - before(start));
  return [note, ...(needed ? [said] : []), ...kept];
}
