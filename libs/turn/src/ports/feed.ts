import type { JsonValue, StopReason, TurnStatus, Usage } from '#libs/contracts';

/** Sums over a turn so far. Tokens are counts, `cost_usd` is null when no price is known. */
export interface TurnTotals {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_usd: number | null;
}

/**
 * What happens in a turn, as it happens, for somebody who watches. The feed is live and not durable: it may be lost with
 * the process, the transcript may not. All times are ms.
 */
export type FeedEvent =
  | { type: 'turn_started'; session_id: string; turn_id: string; model: string; provider: string | null; timestamp: number }
  | { type: 'step_started'; session_id: string; turn_id: string; step: number }
  | { type: 'text_delta'; session_id: string; turn_id: string; step: number; delta: string }
  | { type: 'thinking_delta'; session_id: string; turn_id: string; step: number; delta: string }
  | {
      type: 'message_finished';
      session_id: string;
      turn_id: string;
      step: number;
      stop_reason: StopReason;
      provider: string;
      model: string;
      usage: Usage | null;
    }
  | {
      type: 'call_started';
      session_id: string;
      turn_id: string;
      step: number;
      call_id: string;
      function_id: string;
      arguments: JsonValue;
      description: string | null;
    }
  | {
      type: 'call_finished';
      session_id: string;
      turn_id: string;
      step: number;
      call_id: string;
      function_id: string;
      outcome: 'ok' | 'error' | 'denied' | 'stopped';
      duration_ms: number;
      preview: string;
    }
  | { type: 'call_pending'; session_id: string; turn_id: string; step: number; call_id: string; function_id: string }
  | { type: 'notice'; session_id: string; turn_id: string; text: string }
  | {
      type: 'turn_finished';
      session_id: string;
      turn_id: string;
      /** Absent where the record of the turn is out of reach. */
      trace_id?: string;
      status: TurnStatus;
      reason: string | null;
      result: JsonValue;
      result_error: string | null;
      steps: number;
      calls: number;
      totals: TurnTotals;
      duration_ms: number;
    };

/** Where the loop tells what happens. Must not throw and must not block. */
export interface Feed {
  publish(event: FeedEvent): void;
}
/** Injection token of the `Feed`. */
export const FEED = Symbol('harness:feed');

/** A feed with subscribers, in process. A subscriber that throws is dropped and reported. */
export class LiveFeed implements Feed {
  private readonly subscribers = new Set<(event: FeedEvent) => void>();

  constructor(private readonly report: (error: unknown) => void = (error) => process.emitWarning(String(error))) {}

  publish(event: FeedEvent): void {
    for (const subscriber of this.subscribers) {
      try {
        subscriber(event);
      } catch (error) {
        this.subscribers.delete(subscriber);
        this.report(error);
      }
    }
  }

  /** Calls `subscriber` for each event from now on; returns how to stop. */
  subscribe(subscriber: (event: FeedEvent) => void): () => void {
    this.subscribers.add(subscriber);
    return () => this.subscribers.delete(subscriber);
  }
}
