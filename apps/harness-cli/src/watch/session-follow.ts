import { setTimeout as sleep } from 'node:timers/promises';
import { type Entry, errorCode, type MessageItem, type StatusReport } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { usageError } from '../cli/exit.js';
import { isOver } from '../turn/session.js';

/** How often the session is looked at, in ms: while a turn runs, and while none does. */
const BUSY_MS = 150;
const IDLE_MS = 400;
const PAGE = 200;

/** What is new in a session. */
export type SessionChange =
  /** An entry that is complete; each comes once, in the order of the conversation. */
  | { kind: 'entry'; item: MessageItem }
  /** An answer that is being written, as far as it is; it comes as an entry when it is complete. */
  | { kind: 'growing'; item: MessageItem }
  /** The turn began, waits, goes on or ended. */
  | { kind: 'turn'; turn: StatusReport };

export interface FollowOptions {
  /** The entry to begin with, or `start`; the latest message of the user when absent. */
  from?: string;
  /** With the data of images. */
  images: boolean;
  signal: AbortSignal;
}

/**
 * Follows a session wherever it runs, over turns, until `signal` is given. Each look is a few short reads, and nothing is kept
 * open between them. Throws `cli/unknown_entry` for a `from` that is not there.
 */
export async function* followSession(bus: Bus, sessionId: string, options: FollowOptions): AsyncGenerator<SessionChange> {
  const told = new Set<string>();
  let last = await before(bus, sessionId, options.from);
  let turn = '';
  while (!options.signal.aborted) {
    // Read before the entries: what is the end of a turn then, has its last entry among them.
    const report = await bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id: sessionId } });
    const live = !isOver(report);
    let more = true;
    let growing: MessageItem | null = null;
    while (more) {
      const page = await read(bus, sessionId, last, options.images);
      if (page === null) {
        last = null; // the conversation goes on in another branch: what is told already is passed over
        continue;
      }
      more = page.more;
      for (const [index, item] of page.items.entries()) {
        if (!more && live && index === page.items.length - 1 && isUnfinished(item)) {
          growing = item;
          break;
        }
        last = item.entry_id;
        if (told.has(item.entry_id)) continue;
        told.add(item.entry_id);
        yield { kind: 'entry', item };
      }
    }
    if (growing !== null) yield { kind: 'growing', item: growing };
    const state = JSON.stringify([report?.turn_id, report?.status, report?.pending_function_calls]);
    if (report !== null && state !== turn) yield { kind: 'turn', turn: report };
    turn = state;
    await sleep(live ? BUSY_MS : IDLE_MS, undefined, { signal: options.signal }).catch(() => undefined);
  }
}

/** What a running turn has stored of an answer so far says that it was cut off. */
const isUnfinished = ({ message }: MessageItem): boolean => message?.role === 'assistant' && message.stop_reason === 'aborted';

/** The entries after `last`, or null when that is not on the active path any more. */
async function read(
  bus: Bus,
  sessionId: string,
  last: string | null,
  images: boolean,
): Promise<{ items: MessageItem[]; more: boolean } | null> {
  try {
    const page = await bus.trigger<{ messages: MessageItem[]; next_cursor?: string | null }>({
      function_id: 'session::messages',
      payload: {
        session_id: sessionId,
        limit: PAGE,
        include_custom: true,
        include_image_data: images,
        ...(last === null ? {} : { after_entry_id: last }),
      },
    });
    return { items: page.messages, more: page.next_cursor != null };
  } catch (error) {
    if (last !== null && errorCode(error) === 'session/invalid_cursor') return null;
    throw error;
  }
}

/** The entry before the one to begin with; null to begin with the first. */
async function before(bus: Bus, sessionId: string, from: string | undefined): Promise<string | null> {
  if (from === 'start') return null;
  const first = from ?? (await latestQuestion(bus, sessionId));
  if (first === null) return null;
  const found = await bus.trigger<{ entry: Entry } | null>({
    function_id: 'session::get-message',
    payload: { session_id: sessionId, entry_id: first },
  });
  if (found === null)
    throw usageError(`session ${sessionId} has no entry ${first}`, 'See its entries with `harness-cli show --json`.', 'cli/unknown_entry');
  return found.entry.parent_id ?? null;
}

async function latestQuestion(bus: Bus, sessionId: string): Promise<string | null> {
  let latest: string | null = null;
  let cursor: string | null = null;
  do {
    const page: { messages: MessageItem[]; next_cursor?: string | null } = await bus.trigger({
      function_id: 'session::messages',
      payload: { session_id: sessionId, limit: 500, roles: ['user'], include_image_data: false, ...(cursor === null ? {} : { cursor }) },
    });
    latest = page.messages.at(-1)?.entry_id ?? latest;
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
  return latest;
}
