import { type Entry, errorCode, type MessageItem } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { Transcript } from '#libs/turn';
import { windowOf } from '../../sessions/window.js';

/** Rows that are read at once. */
const PAGE = 500;
/** Sessions whose window is known to begin after an entry. */
const MAX_ANCHORS = 10_000;

/** Reads conversations by `session::*` of whatever worker keeps them. What a read costs is the window, once where that begins is known. */
export class BusTranscript implements Transcript {
  /** The entry before the window of a session. */
  private readonly anchors = new Map<string, string>();

  constructor(
    private readonly bus: Pick<Bus, 'trigger'>,
    private readonly timeoutMs: () => number,
  ) {}

  async window(sessionId: string): Promise<readonly Entry[]> {
    const anchor = this.anchors.get(sessionId);
    const path = anchor === undefined ? await this.path(sessionId) : await this.after(sessionId, anchor);
    const window = windowOf(path);
    const tail = window[1];
    const before = window === path || tail === undefined ? undefined : path[path.indexOf(tail) - 1];
    if (before !== undefined && before !== window[0]) this.keep(sessionId, before.id);
    return window;
  }

  async entry(sessionId: string, entryId: string): Promise<Entry | null> {
    const payload = { session_id: sessionId, entry_id: entryId };
    const found = await this.call<{ entry: Entry } | null>('get-message', payload);
    return found?.entry ?? null;
  }

  /** The path after an entry; the whole of it when that is not on it any more. */
  private async after(sessionId: string, anchor: string): Promise<Entry[]> {
    try {
      return await this.path(sessionId, anchor);
    } catch (error) {
      if (errorCode(error) !== 'session/invalid_cursor' && errorCode(error) !== 'session/entry_not_found') throw error;
      this.anchors.delete(sessionId);
      return await this.path(sessionId);
    }
  }

  private async path(sessionId: string, after?: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    let cursor: string | null = null;
    do {
      const place: object = cursor === null ? (after === undefined ? {} : { after_entry_id: after }) : { cursor };
      const page: { messages: MessageItem[]; next_cursor?: string | null } | null = await this.page({
        session_id: sessionId,
        limit: PAGE,
        include_custom: true,
        ...place,
      });
      if (page === null) return [];
      entries.push(...page.messages.map(entryOf));
      cursor = page.next_cursor ?? null;
    } while (cursor !== null);
    return entries;
  }

  /** A page; null when there is no such session. */
  private async page(payload: object): Promise<{ messages: MessageItem[]; next_cursor?: string | null } | null> {
    try {
      return await this.call('messages', payload);
    } catch (error) {
      if (errorCode(error) === 'session/not_found') return null;
      throw error;
    }
  }

  private keep(sessionId: string, entryId: string): void {
    this.anchors.delete(sessionId);
    this.anchors.set(sessionId, entryId);
    const oldest = this.anchors.keys().next().value;
    if (this.anchors.size > MAX_ANCHORS && oldest !== undefined) this.anchors.delete(oldest);
  }

  private call<T>(what: string, payload: object): Promise<T> {
    return this.bus.trigger<T>({ function_id: `session::${what}`, payload, timeoutMs: this.timeoutMs() });
  }
}

/** A row of a transcript as an entry. Pages tell no revisions. */
function entryOf({ entry_id: id, message, custom, origin }: MessageItem): Entry {
  const base = { id, revision: 0, ...(origin == null ? {} : { origin }) };
  if (message !== undefined && message !== null) return { kind: 'message', ...base, timestamp: message.timestamp, message };
  return { kind: 'custom', ...base, timestamp: 0, custom_type: custom?.custom_type ?? '', data: custom?.data ?? null };
}
