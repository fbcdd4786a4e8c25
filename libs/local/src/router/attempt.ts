import type { AssistantMessage, ProviderStreamRequest, StreamFrame } from '#libs/contracts';
import type { Bus, Channel, TraceContext } from '#libs/iii';
import { codeOfKind, type Failure, failureOfCall, kindOf, ROUTER_CODES } from './errors.js';
import { PartialMessage } from './partial.js';
import { streamFunction } from './providers.js';

/** Where the frames of a chat go. A promise means that the reader is behind. */
export type FrameSink = (frame: StreamFrame) => void | Promise<void>;

/** How long a try may last. Times in ms; `deadline` is on the clock of `performance.now()`. */
export interface AttemptLimits {
  deadline: number;
  streamTimeoutMs: number;
  idleTimeoutMs: number;
  firstByteTimeoutMs: number;
}

/** How a try ended. `done` has the provider's terminal message; only a `failed` one that forwarded nothing may be repeated. */
export type AttemptOutcome = { kind: 'done'; message: AssistantMessage } | { kind: 'aborted' } | { kind: 'failed'; failure: Failure };

/** How long frames may still be under way when the provider's function has already returned, or thrown. */
const SETTLED_GRACE_MS = 1_000;
const THROWN_GRACE_MS = 100;

/**
 * One try of a generation: its own channel to the provider, whose frames are passed on until the terminal one, which is
 * returned. Frames before the first content are held back, so that an early failure leaves no trace at the caller.
 */
export class Attempt {
  /** True once a frame with content has been passed on. */
  forwarded = false;
  readonly partial = new PartialMessage();
  private held: StreamFrame[] = [];
  private channel: Channel | undefined;
  private ended: AttemptOutcome | undefined;
  private timer: NodeJS.Timeout | undefined;
  private lastProgress = performance.now();
  private hasFrame = false;
  private waitingForCaller = false;
  private stopWaiting: (() => void) | undefined;
  private returned: Promise<void> = Promise.resolve();
  /** When the provider's function has returned: how that ends the stream if nothing else does. */
  private settled: { at: number; graceMs: number; failure: Failure } | undefined;

  constructor(
    private readonly bus: Bus,
    private readonly provider: string,
    private readonly request: Omit<ProviderStreamRequest, 'writer_ref'>,
    private readonly sink: FrameSink,
    private readonly limits: AttemptLimits,
    private readonly trace: TraceContext | undefined,
  ) {}

  async run(): Promise<AttemptOutcome> {
    if (this.ended !== undefined) return this.ended;
    const channel = await this.bus.createChannel();
    this.channel = channel;
    try {
      if (this.ended === undefined) {
        this.returned = this.start(channel);
        this.watch();
        const outcome = await this.relay(channel);
        this.ended ??= outcome;
      }
      return this.ended;
    } finally {
      this.end({ kind: 'aborted' });
      clearTimeout(this.timer);
      this.dismiss(channel);
    }
  }

  /** Closes the channel once the provider has closed its end, so that a good stream does not look cancelled; soon, if it does not. */
  private dismiss({ reader }: Channel): void {
    const timer = setTimeout(() => reader.close(), SETTLED_GRACE_MS);
    timer.unref();
    void this.returned.then(() => {
      clearTimeout(timer);
      reader.close();
    });
  }

  /** Ends the try at once; the provider sees its channel close. */
  abort(): void {
    this.end({ kind: 'aborted' });
  }

  /** Calls the provider; the promise is kept when its function has returned, and never rejects. */
  private start(channel: Channel): Promise<void> {
    const timeoutMs = Math.max(1, this.limits.deadline - performance.now()) + SETTLED_GRACE_MS;
    return this.bus
      .trigger({
        function_id: streamFunction(this.provider),
        payload: { writer_ref: channel.writerRef, ...this.request } satisfies ProviderStreamRequest,
        timeoutMs,
        ...(this.trace === undefined ? {} : { trace: this.trace }),
      })
      .then(
        () => this.settle(incomplete(this.provider), SETTLED_GRACE_MS),
        (error: unknown) => {
          const failure = failureOfCall(this.provider, error);
          if (failure.code === ROUTER_CODES.providerUnavailable) this.fail(failure);
          else this.settle(failure, THROWN_GRACE_MS);
        },
      );
  }

  private async relay({ reader }: Channel): Promise<AttemptOutcome> {
    for (;;) {
      const batch = await reader.next();
      if (this.ended !== undefined) return this.ended;
      if (batch === null) return this.closed();
      for (const item of batch) {
        const outcome = this.take(item as StreamFrame);
        if (outcome === undefined) continue;
        const result = outcome instanceof Promise ? await this.whileWaiting(outcome) : outcome;
        if (this.ended !== undefined) return this.ended;
        if (result !== undefined) return result;
      }
    }
  }

  /** The stream closed without a terminal frame: the provider's own error says why, when its function threw one. */
  private async closed(): Promise<AttemptOutcome> {
    if (this.settled === undefined) {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, SETTLED_GRACE_MS);
      });
      await Promise.race([this.returned, limit]);
      clearTimeout(timer);
    }
    return this.ended ?? { kind: 'failed', failure: this.settled?.failure ?? incomplete(this.provider) };
  }

  /** Handles one frame: an outcome when it is terminal, a promise when the caller is behind. */
  private take(frame: StreamFrame): AttemptOutcome | undefined | Promise<undefined> {
    if (typeof frame !== 'object' || frame === null || typeof frame.type !== 'string') return this.malformed('a frame without a type');
    if (frame.type === 'ping') return this.pass(frame);
    this.lastProgress = performance.now();
    if (!this.hasFrame) this.firstFrame();
    if (frame.type === 'done' || frame.type === 'error') return this.terminal(frame);
    this.partial.add(frame);
    if (this.forwarded) return this.pass(frame);
    this.held.push(frame);
    return hasContent(frame) ? this.release() : undefined;
  }

  private firstFrame(): void {
    this.hasFrame = true;
    if (this.limits.idleTimeoutMs >= this.limits.firstByteTimeoutMs) return;
    clearTimeout(this.timer);
    this.watch();
  }

  private terminal(frame: StreamFrame & { type: 'done' | 'error' }): AttemptOutcome | Promise<undefined> {
    const message = frame.type === 'done' ? frame.message : frame.error;
    if (typeof message !== 'object' || message === null || !Array.isArray(message.content))
      return this.malformed(`the ${frame.type} frame without its message`);
    if (message.stop_reason === 'aborted' || (frame.type === 'done' && message.stop_reason !== 'error')) return { kind: 'done', message };
    const kind = kindOf(message.error_kind);
    const text = message.error_message ?? '';
    const failure: Failure = {
      code: codeOfKind(kind),
      message: text === '' ? `provider ${this.provider} gave no reason` : text,
      kind,
      terminal: message,
    };
    const wait = retryAfterOf(frame);
    return { kind: 'failed', failure: wait === undefined ? failure : { ...failure, retryAfterMs: wait } };
  }

  private malformed(what: string): AttemptOutcome {
    return {
      kind: 'failed',
      failure: { code: ROUTER_CODES.providerRejected, message: `provider ${this.provider} sent ${what}`, kind: 'permanent' },
    };
  }

  /** Passes on what was held back; called when the first content is there, or when the outcome is final. */
  release(): undefined | Promise<undefined> {
    this.forwarded = true;
    const held = this.held;
    this.held = [];
    return this.flush(held, 0);
  }

  private flush(frames: readonly StreamFrame[], from: number): undefined | Promise<undefined> {
    for (let i = from; i < frames.length; i++) {
      const behind = this.pass(frames[i] as StreamFrame);
      if (behind !== undefined) return behind.then(() => this.flush(frames, i + 1));
    }
    return undefined;
  }

  private pass(frame: StreamFrame): undefined | Promise<undefined> {
    const behind = this.sink(frame);
    return behind instanceof Promise ? behind.then(() => undefined) : undefined;
  }

  /** Time that the caller needs is not the provider's idle time. */
  private async whileWaiting(behind: Promise<undefined>): Promise<undefined> {
    this.waitingForCaller = true;
    const ended = new Promise<void>((resolve) => {
      this.stopWaiting = resolve;
    });
    await Promise.race([behind, ended]);
    this.waitingForCaller = false;
    this.lastProgress = performance.now();
    return undefined;
  }

  /** One timer for all limits; progress does not touch it, it looks again when it fires. */
  private watch(): void {
    const now = performance.now();
    const idleMs = this.hasFrame ? this.limits.idleTimeoutMs : this.limits.firstByteTimeoutMs;
    const idleAt = this.waitingForCaller ? now + idleMs : this.lastProgress + idleMs;
    const settledAt =
      this.settled === undefined || this.waitingForCaller ? Infinity : Math.max(this.settled.at, this.lastProgress) + this.settled.graceMs;
    const nextAt = Math.min(this.limits.deadline, settledAt, idleAt);
    if (now < nextAt) {
      this.timer = setTimeout(() => this.watch(), Math.min(Math.ceil(nextAt - now), 2 ** 31 - 1));
    } else if (now >= this.limits.deadline) {
      const message = `the stream of provider ${this.provider} did not end within ${this.limits.streamTimeoutMs} ms`;
      this.fail({ code: ROUTER_CODES.streamTimeout, message, kind: 'transient' });
    } else if (this.settled !== undefined && now >= settledAt) {
      this.fail(this.settled.failure);
    } else {
      const message = this.hasFrame
        ? `the stream of provider ${this.provider} stalled: nothing but pings for ${idleMs} ms`
        : `provider ${this.provider} sent nothing within ${idleMs} ms`;
      this.fail({ code: ROUTER_CODES.streamIdleTimeout, message, kind: 'transient' });
    }
  }

  private settle(failure: Failure, graceMs: number): void {
    if (this.ended !== undefined) return;
    this.settled = { at: performance.now(), graceMs, failure };
    clearTimeout(this.timer);
    this.watch();
  }

  private fail(failure: Failure): void {
    this.end({ kind: 'failed', failure });
  }

  /** Ends the try unless it has ended, and closes the channel: the provider sees that as a cancel. */
  private end(outcome: AttemptOutcome): void {
    if (this.ended !== undefined) return;
    this.ended = outcome;
    clearTimeout(this.timer);
    this.channel?.reader.close();
    this.stopWaiting?.();
  }
}

const incomplete = (provider: string): Failure => ({
  code: ROUTER_CODES.streamIncomplete,
  message: `the stream of provider ${provider} ended without its terminal frame`,
  kind: 'transient',
});

/** True for frames after which a try cannot be repeated unnoticed. */
function hasContent(frame: StreamFrame): boolean {
  switch (frame.type) {
    case 'text_delta':
    case 'thinking_delta':
    case 'functioncall_delta':
      return frame.delta !== '';
    case 'text_end':
    case 'thinking_end':
    case 'functioncall_end':
      return true;
    default:
      return false;
  }
}

/** The vendor's `Retry-After`, beside the message of an error frame or in it. */
function retryAfterOf(frame: object): number | undefined {
  const { retry_after_ms: beside, error } = frame as { retry_after_ms?: unknown; error?: { retry_after_ms?: unknown } };
  const wait = beside ?? error?.retry_after_ms;
  return typeof wait === 'number' && Number.isFinite(wait) && wait >= 0 ? wait : undefined;
}
