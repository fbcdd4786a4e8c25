import type { TraceContext } from '#libs/iii';
import { newSpanId, parseTraceparent, type SpanSink, traceparentOf } from '#libs/turn';
import type { AttemptOutcome } from './attempt.js';
import type { ChatCall } from './chat.js';
import { streamFunction } from './providers.js';

/** A try that is under way, as its trace sees it. */
export interface TracedAttempt {
  /** What goes along with the call of the provider. */
  trace: TraceContext | undefined;
  end(outcome: AttemptOutcome): void;
}

/** The spans of the tries of one chat: of those that belong to a turn, which its request id names. */
export class AttemptTrace {
  private readonly turn: { session_id: string; turn_id: string } | null;

  constructor(
    private readonly spans: SpanSink | null,
    { session_id, request_id }: ChatCall,
    private readonly trace: TraceContext | undefined,
  ) {
    const turn_id = /^(.+):\d+$/.exec(request_id ?? '')?.[1];
    this.turn = session_id == null || turn_id === undefined ? null : { session_id, turn_id };
  }

  /** Begins the n-th try. */
  begin(provider: string, n: number): TracedAttempt {
    const { spans, turn, trace } = this;
    const outer = trace?.traceparent === undefined ? null : parseTraceparent(trace.traceparent);
    if (spans?.isOpen !== true || turn === null || outer === null) return { trace, end: () => undefined };
    const span_id = newSpanId();
    const start_ms = Date.now();
    const started = performance.now();
    return {
      trace: { ...trace, traceparent: traceparentOf(outer, span_id) },
      end: (outcome) => {
        const span = {
          span_id,
          parent_id: outer.parent_id,
          name: streamFunction(provider),
          kind: 'client' as const,
          start_ms,
          end_ms: start_ms + performance.now() - started,
          error: outcome.kind === 'failed' ? outcome.failure.code : null,
          attributes: { 'gen_ai.provider.name': provider, 'harness.attempt': n },
        };
        spans.record({ ...turn, trace_id: outer.trace_id, sampled: outer.sampled, spans: [span] });
      },
    };
  }
}
