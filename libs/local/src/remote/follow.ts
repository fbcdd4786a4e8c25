import { randomUUID } from 'node:crypto';
import type { MessageItem, SessionEvents, StatusReport, TurnCompletedEvent } from '#libs/contracts';
import type { Bus, Registration } from '#libs/iii';
import { type FeedEvent, isTerminal } from '#libs/turn';
import { Teller } from '../runtime/teller.js';
import { TurnEntries } from './turn-entries.js';

/** How long nothing may be heard before the turn is looked at, in ms: events that came while a socket was down are lost. */
const LOOK_MS = 2_000;
/** Rows of a transcript that are read at once. */
const PAGE = 500;

/**
 * The events of a turn that runs at the other end of a bus, made from what the session store and the loop tell of it. Ends with
 * `turn_finished`, or without it when the next turn of the session has begun.
 */
export async function* followOverBus(
  bus: Bus,
  sessionId: string,
  turnId: string,
  { signal, fromStart = false }: { signal?: AbortSignal; fromStart?: boolean },
): AsyncGenerator<FeedEvent> {
  const entries = new TurnEntries(turnId);
  const teller = new Teller(sessionId, turnId);
  const startedAt = Date.now();
  const events = new TurnEvents(bus, sessionId, entries);
  signal?.addEventListener('abort', events.wake, { once: true });
  try {
    await readTranscript(bus, sessionId, entries);
    const before = teller.tell(entries.list);
    if (fromStart) yield* before;
    while (signal?.aborted !== true) {
      const over = await turnOver(bus, sessionId, turnId, events);
      if (over === 'superseded') return;
      if (over !== null) await readTranscript(bus, sessionId, entries);
      yield* teller.tell(entries.list);
      if (over !== null) {
        yield finished(over, turnId, entries, startedAt);
        return;
      }
      await events.next(LOOK_MS);
    }
  } finally {
    signal?.removeEventListener('abort', events.wake);
    events.close();
  }
}

/** How a turn ended; null while it lives, `superseded` when another one has the session. */
async function turnOver(
  bus: Bus,
  sessionId: string,
  turnId: string,
  events: TurnEvents,
): Promise<(StatusReport & { reason?: string }) | 'superseded' | null> {
  const told = events.completed.get(turnId);
  if (told === undefined && !events.quiet) return null;
  const report = await bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id: sessionId } });
  if (report === null || report.turn_id !== turnId) return 'superseded';
  return isTerminal(report.status) ? { ...report, ...(told?.reason === undefined ? {} : { reason: told.reason }) } : null;
}

async function readTranscript(bus: Bus, sessionId: string, into: TurnEntries): Promise<void> {
  let cursor: string | null = null;
  do {
    const page: { messages: MessageItem[]; next_cursor?: string | null } = await bus.trigger({
      function_id: 'session::messages',
      payload: { session_id: sessionId, limit: PAGE, include_image_data: false, ...(cursor === null ? {} : { cursor }) },
    });
    for (const item of page.messages) into.read(item);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
}

function finished(report: StatusReport & { reason?: string }, turn_id: string, entries: TurnEntries, startedAt: number): FeedEvent {
  const { session_id, status, reason = null, result = null, result_error = null, step } = report;
  const { totals, calls } = entries;
  return {
    type: 'turn_finished',
    session_id,
    turn_id,
    status,
    reason,
    result,
    result_error,
    steps: step + 1,
    calls,
    totals,
    duration_ms: Date.now() - startedAt,
  };
}

/** Hears of one session: a function of its own, bound to the events of the session store and of the loop. */
class TurnEvents {
  readonly completed = new Map<string, TurnCompletedEvent>();
  /** True when nothing was heard for so long that the turn should be looked at. */
  quiet = true;
  readonly wake = (): void => this.heard?.();
  private heard: (() => void) | undefined;
  private pending = false;
  private readonly registrations: Registration[] = [];

  constructor(bus: Bus, session_id: string, entries: TurnEntries) {
    const prefix = `harness-cli::watch-${randomUUID()}`;
    const on = <T>(name: string, type: string, hear: (event: T) => void): void => {
      const function_id = `${prefix}::${name}`;
      const handler = (payload: unknown): null => {
        hear(payload as T);
        this.pending = true;
        this.wake();
        return null;
      };
      this.registrations.push(
        bus.registerFunction({ id: function_id, description: 'Hears of a turn.', metadata: { internal: true } }, handler),
      );
      this.registrations.push(bus.registerTrigger({ type, function_id, config: { session_id } }));
    };
    on<SessionEvents['session::message-added']>('added', 'session::message-added', (event) => entries.added(event));
    on<SessionEvents['session::message-updated']>('updated', 'session::message-updated', (event) => entries.updated(event));
    on<TurnCompletedEvent>('completed', 'harness::turn-completed', (event) => this.completed.set(event.turn_id, event));
  }

  /** Waits for the next event, for at most `limitMs`. */
  async next(limitMs: number): Promise<void> {
    this.quiet = false;
    if (!this.pending) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.heard = resolve;
        timer = setTimeout(() => {
          this.quiet = true;
          resolve();
        }, limitMs);
      });
      clearTimeout(timer);
    }
    this.pending = false;
  }

  close(): void {
    for (const registration of this.registrations) registration.unregister();
  }
}
