import { BUS_CODES, errorCode, type SessionEvent } from '#libs/contracts';
import type { TurnEvent } from '#libs/turn';
import type { ApprovalEvent } from '../approval/events.js';
import { within } from '../processes/within.js';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';

/** How often an event is delivered to a listener that fails, and the first pause between tries, in ms. */
const TRIES = 4;
const RETRY_MS = 100;

/** How long events that a dead process left wait for somebody who wants them, and how often that is looked at, in ms. */
const REBIND_MS = 60_000;
const REBIND_LOOK_MS = 250;
/** How long after a start events are kept that nobody is bound to yet, in ms. */
const EXPECT_MS = 15_000;

interface OutboxRow {
  seq: number;
  owner: string;
  type: string;
  payload: string;
}

/** Somebody who passes events on to the functions that are bound to them. */
export interface EventListeners {
  /** True when a function is bound to events of this type. */
  wants(type: string): boolean;
  /** Calls the bound functions; resolves when each has answered or was given up. */
  deliver(event: OutboxEvent): Promise<void>;
}

/** What the outbox holds. */
export type OutboxEvent = TurnEvent | SessionEvent | ApprovalEvent;

/** An event with its row in the outbox. */
export interface StoredEvent {
  event: OutboxEvent;
  seq: number;
}

/**
 * The outbox: an event that somebody is bound to is stored in the transaction that it tells of, delivered after it, and
 * removed with a later commit. So it is delivered at least once, also when the process dies in between.
 */
export class EventDelivery {
  private readonly insert: SqliteStatement;
  private readonly remove: SqliteStatement;
  private readonly listeners: EventListeners[] = [];
  /** Rows whose delivery is over, and those of them that a commit is removing. */
  private delivered: number[] = [];
  private removing: number[] = [];
  private readonly underWay = new Set<Promise<void>>();
  /** Events that nobody wants yet, and until when they are kept. */
  private waiting: (StoredEvent & { until: number })[] = [];
  private lookTimer: NodeJS.Timeout | undefined;
  private expectingUntil = 0;
  private settling = false;

  constructor(
    private readonly db: SqliteConnection,
    private readonly owner: string,
    private readonly report: (message: string, context: { [key: string]: unknown }) => void,
  ) {
    this.insert = db.prepare('INSERT INTO outbox (owner, type, payload) VALUES (?, ?, ?)');
    this.remove = db.prepare('DELETE FROM outbox WHERE seq = ?');
  }

  addListeners(listeners: EventListeners): void {
    this.listeners.push(listeners);
  }

  /** Inside a write transaction: stores the events that somebody wants, removes those that are done. May run again. */
  record(turn: readonly (TurnEvent | ApprovalEvent)[], session: readonly SessionEvent[]): StoredEvent[] {
    this.removing.push(...this.delivered.splice(0));
    for (const seq of this.removing) this.remove.run(seq);
    const stored: StoredEvent[] = [];
    for (const event of [...session, ...turn]) {
      if (!this.isWanted(event.type) && Date.now() >= this.expectingUntil) continue;
      const { lastInsertRowid } = this.insert.run(this.owner, event.type, JSON.stringify(event.payload));
      stored.push({ event, seq: Number(lastInsertRowid) });
    }
    return stored;
  }

  /** After the commit: delivers what `record` stored, in order. */
  deliver(stored: readonly StoredEvent[]): void {
    this.removing = [];
    for (const { event, seq } of stored) {
      if (this.isWanted(event.type)) this.track(this.pass(event, seq));
      else this.keep({ event, seq });
    }
  }

  /**
   * To be called where programs of other processes connect: for a while from now on, events are kept for those that were bound
   * before a restart and have yet to come back. What they hear of are the turns that this process takes over first of all.
   */
  expectConsumers(): void {
    this.expectingUntil = Date.now() + EXPECT_MS;
  }

  /**
   * Delivers, in the background, what processes that are gone left behind. Functions may be bound only later, when their
   * workers have come back, so what nobody wants yet is kept for a while before it is let go.
   */
  recover(hasEnded: (owner: string) => boolean): void {
    const rows = this.db.prepare('SELECT seq, owner, type, payload FROM outbox ORDER BY seq').all() as OutboxRow[];
    for (const { seq, owner, type, payload } of rows) {
      if (!hasEnded(owner)) continue;
      const event = { type, payload: JSON.parse(payload) as unknown } as OutboxEvent;
      if (this.isWanted(type)) this.track(this.pass(event, seq));
      else this.keep({ event, seq });
    }
  }

  /** Waits for deliveries that are under way, for at most `graceMs`. */
  async settle(graceMs: number): Promise<void> {
    this.settling = true;
    clearTimeout(this.lookTimer);
    await within(Promise.allSettled([...this.underWay]), graceMs);
  }

  /** True while rows of events that were delivered wait for a commit that removes them. */
  get hasDelivered(): boolean {
    return this.delivered.length > 0;
  }

  private isWanted(type: string): boolean {
    return this.listeners.some((listeners) => listeners.wants(type));
  }

  /** Keeps an event until somebody wants it, for a while. */
  private keep(stored: StoredEvent): void {
    this.waiting.push({ ...stored, until: Date.now() + REBIND_MS });
    this.lookTimer ??= setTimeout(() => this.look(), REBIND_LOOK_MS).unref();
  }

  private look(): void {
    this.lookTimer = undefined;
    if (this.settling) return; // the rows stay for the next start
    const now = Date.now();
    for (const kept of this.waiting.splice(0)) {
      if (now < kept.until && !this.isWanted(kept.event.type)) this.waiting.push(kept);
      else this.track(this.pass(kept.event, kept.seq));
    }
    if (this.waiting.length > 0) this.lookTimer = setTimeout(() => this.look(), REBIND_LOOK_MS).unref();
  }

  private track(delivery: Promise<void>): void {
    this.underWay.add(delivery);
    void delivery.finally(() => this.underWay.delete(delivery));
  }

  private async pass(event: OutboxEvent, seq: number): Promise<void> {
    for (const listeners of this.listeners) {
      if (!listeners.wants(event.type)) continue;
      if (!(await this.tell(listeners, event)) && (this.settling || event.type === 'harness::child-ended')) return; // its row stays: the next start tries again
    }
    this.delivered.push(seq);
  }

  /** Tells one listener, with a few tries; false when it could not be told. */
  private async tell(listeners: EventListeners, event: OutboxEvent): Promise<boolean> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await listeners.deliver(event);
        return true;
      } catch (error) {
        if (errorCode(error) === BUS_CODES.stopped || errorCode(error) === BUS_CODES.connectionLost)
          await this.rebound(listeners, event.type);
        if (this.settling) return false;
        if (attempt + 1 < TRIES) await new Promise((resolve) => setTimeout(resolve, RETRY_MS * 2 ** attempt));
        else {
          this.report('an event could not be delivered', { type: event.type, error: String(error) });
          return false;
        }
      }
    }
  }

  /** After a worker went away over an event: waits, for a while, until a function is bound to it again. */
  private async rebound(listeners: EventListeners, type: string): Promise<void> {
    const deadline = Date.now() + REBIND_MS;
    while (!this.settling && !listeners.wants(type) && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, REBIND_LOOK_MS).unref());
    }
  }
}
