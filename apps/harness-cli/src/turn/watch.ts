import { pause, type StatusReport } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import type { FeedEvent } from '#libs/turn';
import { CliError, EXIT } from '../cli/exit.js';
import { isOver } from './session.js';

/** The last event of a turn. */
export type TurnFinished = Extract<FeedEvent, { type: 'turn_finished' }>;
export interface WatchedTurn {
  sessionId: string;
  turnId: string;
  /** The message joined a turn that was running already, so what came before is not told. */
  merged: boolean;
}

/** How often a turn that is quiet here is looked at, in ms; at the beginning more often. */
const LOOK_MS = 1000;
const FIRST_LOOK_MS = 50;

/**
 * Watches one turn to its end, wherever it runs: in this process by the live feed, in another one by what that stores. A turn
 * whose process is gone is taken over. Made before the message is sent, so that no event is missed.
 */
export class TurnWatch {
  private turn: WatchedTurn | null = null;
  private readonly unsubscribe: () => void;
  private lastLive = 0;
  private told = false;
  private following: AbortController | null = null;
  private readonly ended = new AbortController();
  private settle: { resolve(event: TurnFinished): void; reject(error: unknown): void } | null = null;
  private onEvent: (event: FeedEvent) => void = () => undefined;

  constructor(
    private readonly runtime: EmbeddedRuntime,
    private readonly lookMs = LOOK_MS,
    /** What is known of the turn already. */
    private readonly early: FeedEvent[] = [],
  ) {
    this.unsubscribe = runtime.feed.subscribe((event) => this.live(event));
  }

  /** Tells every event of the turn to `onEvent`, and gives the last one. */
  async run(turn: WatchedTurn, onEvent: (event: FeedEvent) => void): Promise<TurnFinished> {
    this.turn = turn;
    this.onEvent = onEvent;
    const finished = new Promise<TurnFinished>((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    for (const event of this.early.splice(0)) this.live(event);
    this.supervise(turn).catch((error: unknown) => this.settle?.reject(error));
    try {
      return await finished;
    } finally {
      this.close();
    }
  }

  /** Ends the watch. */
  close(): void {
    this.ended.abort();
    this.following?.abort();
    this.unsubscribe();
  }

  private live(event: FeedEvent): void {
    if (this.turn === null) {
      this.early.push(event);
      return;
    }
    if (event.session_id !== this.turn.sessionId || event.turn_id !== this.turn.turnId) return;
    this.lastLive = Date.now();
    if (this.following === null) this.tell(event);
  }

  private tell(event: FeedEvent): void {
    if (this.ended.signal.aborted) return;
    this.told = true;
    this.onEvent(event);
    if (event.type === 'turn_finished') this.settle?.resolve(event);
  }

  /** While nothing comes from this process: finds out who has the turn, and follows it there or takes it over. */
  private async supervise(turn: WatchedTurn): Promise<void> {
    let soon = FIRST_LOOK_MS; // a turn that another process was just given may take a moment to be anybody's
    for (; !this.ended.signal.aborted; await pause(Math.min(soon, this.lookMs), this.ended.signal)) {
      soon *= 2;
      if (Date.now() - this.lastLive < this.lookMs) continue;
      const owner = await this.runtime.turnOwner(turn.sessionId);
      switch (owner) {
        case 'self':
          this.leave();
          break;
        case 'gone':
          this.leave();
          await this.runtime.adopt(turn.sessionId);
          break;
        case 'other':
          this.follow(turn);
          break;
        case 'none':
          await this.lookAtEnd(turn);
          break;
        default:
          throw new Error(`unknown owner ${String(owner satisfies never)}`);
      }
    }
  }

  private follow({ sessionId, turnId, merged }: WatchedTurn): void {
    if (this.following !== null || this.ended.signal.aborted) return;
    const stop = new AbortController();
    this.following = stop;
    // Ends without `turn_finished` when the next turn of the session has begun; the loop above then finds that out.
    const pump = async (): Promise<void> => {
      for await (const event of this.runtime.follow(sessionId, turnId, { signal: stop.signal, fromStart: !merged && !this.told })) {
        if (stop.signal.aborted) return;
        this.tell(event);
      }
    };
    pump().then(
      () => this.leave(stop),
      (error: unknown) => (stop.signal.aborted ? undefined : this.settle?.reject(error)),
    );
  }

  private leave(which: AbortController | null = this.following): void {
    which?.abort();
    if (this.following === which) this.following = null;
  }

  /** Nobody runs the turn: it has ended, or waits for its pending calls. */
  private async lookAtEnd(turn: WatchedTurn): Promise<void> {
    const report = await this.runtime.bus.trigger<StatusReport | null>({
      function_id: 'harness::status',
      payload: { session_id: turn.sessionId },
    });
    if (report === null || report.turn_id !== turn.turnId) {
      throw new CliError(
        EXIT.unreachable,
        'cli/turn_replaced',
        'the turn has ended, and its session has gone on: how it ended is not kept',
        'See the transcript with `harness-cli show`.',
      );
    }
    if (isOver(report)) this.follow(turn);
    // Somebody who runs nothing himself, as `approve` does, has let it go on.
    else if (report.status === 'running') await this.runtime.adopt(turn.sessionId);
  }
}
