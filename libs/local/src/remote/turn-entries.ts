import type { Entry, JsonObject, MessageItem, SessionEvents } from '#libs/contracts';
import { addUsage, noUsage, type TurnTotals } from '#libs/turn';

type Told = Extract<Entry, { kind: 'message' }>;

/** The messages of one turn as the session store tells of them: each once, in its newest revision, in the order of their arrival. */
export class TurnEntries {
  readonly list: Told[] = [];
  private readonly places = new Map<string, number>();

  constructor(private readonly turnId: string) {}

  /** Takes a row of the transcript, which has no revision and is newer than any event that came before it was asked for. */
  read({ entry_id, message, origin }: MessageItem): void {
    if (message !== undefined) this.put({ entry_id, message, revision: 0, timestamp: message.timestamp, origin }, true);
  }

  added({ entry_id, message, timestamp, origin }: SessionEvents['session::message-added']): void {
    if (message !== undefined) this.put({ entry_id, message, revision: 0, timestamp, origin }, false);
  }

  updated(event: SessionEvents['session::message-updated']): void {
    this.put(event, false);
  }

  /** Calls that were made, as far as their results tell. */
  get calls(): number {
    return this.list.filter(({ message }) => message.role === 'function_result').length;
  }

  get totals(): TurnTotals {
    return this.list.reduce(
      (totals, { message }) => addUsage(totals, message.role === 'assistant' ? (message.usage ?? null) : null),
      noUsage,
    );
  }

  private put(
    item: { entry_id: string; message: Told['message']; revision: number; timestamp: number; origin?: JsonObject },
    wins: boolean,
  ): void {
    const { entry_id: id, message, revision, timestamp, origin } = item;
    if (origin?.['turn_id'] !== this.turnId) return;
    const place = this.places.get(id) ?? this.list.length;
    const known = this.list[place];
    if (known !== undefined && !wins && known.revision >= revision) return;
    this.places.set(id, place);
    this.list[place] = { kind: 'message', id, revision: Math.max(revision, known?.revision ?? 0), timestamp, origin, message };
  }
}
