import { errorCode } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { Decision } from '../machine/decision.js';
import type { GenerationOutcome } from '../model/generate.js';
import type { Clock } from '../ports/clock.js';
import type { Span, SpanAttributes, SpanSink } from '../ports/spans.js';
import type { TurnRecord } from '../record/record.js';
import { DESCENDANT_FAILED, endedSpans } from './ended.js';
import { chatOutcome, chatSpan } from './genai.js';
import { callSpanId, newSpanId, type TurnTrace, traceOf, traceparentOf } from './ids.js';
import { TracedBus } from './traced-bus.js';
import { codeOf, idOf } from './words.js';

/** What a span is begun with. */
export interface SpanStart {
  name: string;
  kind?: Span['kind'];
  attributes?: SpanAttributes;
}

/** What a run works with. */
interface TracePorts {
  bus: Bus;
  clock: Clock;
  spans: SpanSink;
}

/**
 * The spans of one run of a step, or of one call from outside. They are told all at once when it ends: a process that dies leaves
 * none without its parent. One thing happens at a time in a run, so what it does belongs to the span that was begun last. While
 * nobody takes spans none are made, and what is called is part of the turn's.
 */
export class RunTrace {
  /** Calls on it carry the span that is open. */
  readonly bus: Bus;
  private readonly trace: TurnTrace;
  private readonly isKept: boolean;
  /** The one of the run itself comes first. */
  private readonly spans: [Span, ...Span[]];
  private readonly startOf = new Map<string, number>();
  private readonly base: number;
  private current: string;

  constructor(
    private readonly ports: TracePorts,
    private readonly record: TurnRecord,
    top: SpanStart,
  ) {
    this.trace = traceOf(record);
    this.isKept = ports.spans.isOpen;
    this.base = ports.clock.now() - performance.now();
    this.spans = [this.begin(top, this.trace.span_id)];
    this.current = this.isKept ? this.spans[0].span_id : this.trace.span_id;
    this.bus = new TracedBus(ports.bus, () => traceparentOf(this.trace, this.current));
  }

  /** Does something within a span of its own. It may add to the span; when it throws, the span has failed. */
  async within<T>(start: SpanStart, run: (span: Span) => Promise<T>): Promise<T> {
    const span = this.begin(start, this.current);
    if (!this.isKept) return await run(span);
    try {
      return await this.as(span.span_id, () => run(span));
    } catch (error) {
      span.error = codeOf(errorCode(error), 'failed');
      throw error;
    } finally {
      span.end_ms = this.now();
      this.spans.push(span);
    }
  }

  /** Asks a model, and keeps what came of it. */
  generation(run: () => Promise<GenerationOutcome>): Promise<GenerationOutcome> {
    if (!this.isKept) return run();
    return this.within(chatSpan(this.record), async (span) => {
      const outcome = await run();
      chatOutcome(span, outcome);
      return outcome;
    });
  }

  /** Does something for a call, whose own span ends with the commit of its result. */
  during<T>(callId: string, run: () => Promise<T>): Promise<T> {
    if (!this.isKept) return run();
    if (!this.startOf.has(callId)) this.startOf.set(callId, this.now());
    return this.as(callSpanId(this.record.turn_id, callId), run);
  }

  /** A bus on which each call is a hook that is asked. */
  forHooks(point: string): Pick<Bus, 'trigger'> {
    return {
      trigger: (request) => {
        const start = { name: `hook ${idOf(request.function_id)}`, attributes: { 'harness.hook.point': point } };
        return this.within(start, () => this.bus.trigger(request));
      },
    };
  }

  /** Tells what a committed decision has ended. */
  decided(before: TurnRecord, decision: Decision): void {
    if (!this.isKept) return;
    const around = { trace: this.trace, parent: this.spans[0].span_id, now: this.now(), startOf: this.startOf };
    this.spans.push(...endedSpans(before, decision, around));
  }

  /** Ends the run. `error` is a code that says why it failed; without one it is marked when something in it did. */
  end(error: string | null): void {
    if (!this.isKept) return;
    const { spans, trace, record } = this;
    const [top, ...inside] = spans;
    const hasFailed = inside.some((span) => span.error !== null && span.span_id !== trace.span_id);
    top.end_ms = this.now();
    top.error = error ?? (hasFailed ? DESCENDANT_FAILED : null);
    const { trace_id, sampled } = trace;
    this.ports.spans.record({ trace_id, session_id: record.session_id, turn_id: record.turn_id, sampled, spans });
  }

  private async as<T>(spanId: string, run: () => Promise<T>): Promise<T> {
    const outer = this.current;
    this.current = spanId;
    try {
      return await run();
    } finally {
      this.current = outer;
    }
  }

  private begin({ name, kind = 'internal', attributes = {} }: SpanStart, parent_id: string): Span {
    const now = this.isKept ? this.now() : 0;
    const span_id = this.isKept ? newSpanId() : parent_id;
    return { span_id, parent_id, name, kind, start_ms: now, end_ms: now, error: null, attributes };
  }

  /** The clock, with fractions of a millisecond. */
  private now(): number {
    return this.base + performance.now();
  }
}
