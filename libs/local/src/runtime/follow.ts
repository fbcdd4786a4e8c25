import { type FeedEvent, isTerminal, turnFinished } from '#libs/turn';
import type { Store } from './store.js';
import { Teller } from './teller.js';

/** How often the store is looked at, in ms. */
const LOOK_MS = 60;

/**
 * The events of a turn that another process runs, made from the difference between what is stored now and what was told
 * before. The end is told once, from the terminal record.
 */
export async function* followTurn(
  store: Store,
  sessionId: string,
  turnId: string,
  options: { signal?: AbortSignal; fromStart?: boolean },
): AsyncGenerator<FeedEvent> {
  const teller = new Teller(sessionId, turnId);
  let changed = -1;
  for (let first = true; ; first = false) {
    if (options.signal?.aborted === true) return;
    const version = store.db.pragma('data_version', { simple: true }) as number;
    if (first || version !== changed) {
      changed = version;
      const record = await store.journal.load(sessionId);
      const events = teller.tell(await store.transcript.window(sessionId));
      if (!first || options.fromStart === true) yield* events;
      if (record === null || record.turn_id !== turnId) return; // the next turn has begun: this one is over
      if (isTerminal(record.status)) {
        yield turnFinished(record);
        return;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
