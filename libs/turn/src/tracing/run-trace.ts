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
 * none without its parent. One thing happens at a time in a run, so what it does belongs to the span that was begun last.
 */
export class RunTrace {
  /** Calls on it carry the span that is open. */
  readonly bus: Bus;
  readonly trace: TurnTrace;
  private readonly top: Span;
  private readonly spans: Span[] = [];
  private readonly startOf = new Map<string, number>();
  private readonly base: number;
  private current: string;

  constructor(
    private readonly ports: TracePorts,
    private readonly record: Pick<TurnRecord, 'session_id' | 'turn_id' | 'traceparent'>,
    top: SpanStart & { span_id?: string },
  ) {
    this.trace = traceOf(record);
    this.base = ports.clock.now() - performance.now();
    this.top = this.begin(top, this.trace.span_id, top.span_id ?? newSpanId());
    this.current = this.top.span_id;
    this.bus = new TracedBus(ports.bus, () => traceparentOf(this.trace, this.current));
  }

  /** Does something within a span of its own. It may add to the span; when it throws, the span has failed. */
  async within<T>(start: SpanStart, run: (span: Span) => Promise<T>): Promise<T> {
    const span = this.begin(start, this.current);
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
  generation(record: TurnRecord, run: () => Promise<GenerationOutcome>): Promise<GenerationOutcome> {
    return this.within(chatSpan(record), async (span) => {
      const outcome = await run();
      const { attributes, error } = chatOutcome(outcome);
      Object.assign(span.attributes, attributes);
      span.error = error;
      return outcome;
    });
  }

  /** Does something for a call, whose own span ends with the commit of its result. */
  during<T>(callId: string, run: () => Promise<T>): Promise<T> {
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
    const around = { trace: this.trace, parent: this.top.span_id, now: this.now(), startOf: this.startOf };
    this.spans.push(...endedSpans(before, decision, around));
  }

  /** Ends the run. `error` is a code that says why it failed; without one it is marked when something in it did. */
  end(error: string | null, attributes: SpanAttributes = {}): void {
    const { session_id, turn_id } = this.record;
    Object.assign(this.top.attributes, attributes);
    this.top.end_ms = this.now();
    this.top.error =
      error ?? (this.spans.some((span) => span.error !== null && span.span_id !== this.trace.span_id) ? DESCENDANT_FAILED : null);
    this.ports.spans.record({ ...this.trace, session_id, turn_id, spans: [this.top, ...this.spans] });
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

  private begin({ name, kind = 'internal', attributes = {} }: SpanStart, parent_id: string, span_id: string = newSpanId()): Span {
    const now = this.now();
    return { span_id, parent_id, name, kind, start_ms: now, end_ms: now, error: null, attributes: { ...attributes } };
  }

  /** The clock, with fractions of a millisecond. */
  private now(): number {
    return this.base + performance.now();
  }
}
