import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  type AssistantMessage,
  type ChatRequest,
  type ChatResponse,
  type ErrorKind,
  errorCode,
  HarnessError,
  type Model,
  type ProviderStreamRequest,
  type StreamFrame,
  type Usage,
} from '#libs/contracts';
import { BUS, type Bus, type TraceContext } from '#libs/iii';
import { SPANS, type SpanSink } from '#libs/turn';
import { Attempt, type AttemptLimits, type AttemptOutcome, type FrameSink } from './attempt.js';
import { AttemptTrace } from './attempt-trace.js';
import { outputBudget } from './budget.js';
import { costOf } from './catalog.js';
import { type Failure, failureOf, isRetryable, ROUTER_CODES, redact } from './errors.js';
import { PartialMessage } from './partial.js';
import { ProviderRegistry } from './providers.js';
import { pauseBefore } from './retry.js';
import { route } from './routing.js';
import { type RetryTiming, ROUTER_TIMING, type RouterSettings, systemTiming } from './settings.js';

/** How often a provider that is on its way back is looked for, in ms. */
const EXPECT_LOOK_MS = 100;

/** A chat without the place where its frames go. */
export type ChatCall = Omit<ChatRequest, 'writer_ref'>;

/** How a chat ended: its terminal message, and why it failed when it did. */
export interface ChatOutcome {
  message: AssistantMessage;
  provider: string;
  model: string;
  failure?: { code: string; message: string; kind: ErrorKind; retryable: boolean };
}

/** Where a model call goes, with all that the provider is told. */
interface Target {
  provider: string;
  /** Only to keep it out of texts. */
  secret: string | null;
  model: Model | undefined;
  request: Omit<ProviderStreamRequest, 'writer_ref'>;
}

/** A chat that runs, as `router::abort` and a consumer that leaves see it. */
export interface RunningChat {
  cancel(): void;
}

class Cancellation implements RunningChat {
  cancelled = false;
  attempt: Attempt | undefined;
  private controller: AbortController | undefined;

  /** Made only when a pause needs it. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.cancelled) this.controller.abort();
    return this.controller.signal;
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    this.controller?.abort();
    this.attempt?.abort();
  }
}

/**
 * Runs chats: routes each, calls its provider, repeats what failed early, and ends it with exactly one terminal frame. It is the
 * only owner of retries.
 */
@Injectable()
export class ChatService {
  private readonly running = new Map<string, RunningChat>();

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(ProviderRegistry) private readonly registry: ProviderRegistry,
    @Optional() @Inject(ROUTER_TIMING) private readonly timing: RetryTiming = systemTiming,
    @Optional() @Inject(SPANS) private readonly spans: SpanSink | null = null,
  ) {}

  /** Streams a chat to the caller's channel; a consumer that closes its end cancels it. */
  async stream(request: ChatRequest, trace?: TraceContext): Promise<ChatResponse> {
    const { writer_ref, ...call } = request;
    const writer = this.bus.openWriter(writer_ref);
    try {
      return responseOf(await this.run(call, (frame) => writer.send(frame), writer.signal, trace));
    } finally {
      writer.close();
    }
  }

  /**
   * Runs a chat to its end. Each frame goes to `sink`, the terminal one last; `signal` cancels. What fails is a terminal
   * `error` frame and a `failure`; it throws only what `sink` throws.
   */
  async run(call: ChatCall, sink: FrameSink, signal: AbortSignal, trace?: TraceContext): Promise<ChatOutcome> {
    const cancellation = new Cancellation();
    const onAbort = (): void => cancellation.cancel();
    if (signal.aborted) cancellation.cancel();
    else signal.addEventListener('abort', onAbort, { once: true });
    const id = call.request_id ?? null;
    try {
      if (id !== null) this.enter(id, cancellation);
    } catch (error) {
      return await this.refuse(call, '', failureOf(error), sink);
    }
    try {
      return await this.generate(call, sink, cancellation, new AttemptTrace(this.spans, call, trace));
    } finally {
      signal.removeEventListener('abort', onAbort);
      if (id !== null) this.running.delete(id);
    }
  }

  /** Cancels a running chat; false when there is none of that id. */
  abort(requestId: string): boolean {
    const chat = this.running.get(requestId);
    chat?.cancel();
    return chat !== undefined;
  }

  private enter(id: string, chat: RunningChat): void {
    if (this.running.has(id)) {
      throw new HarnessError(ROUTER_CODES.requestInProgress, `a chat with request_id ${id} is running; abort it or wait for its end`, {
        retry: 'retry',
      });
    }
    this.running.set(id, chat);
  }

  private async generate(call: ChatCall, sink: FrameSink, cancellation: Cancellation, trace: AttemptTrace): Promise<ChatOutcome> {
    const settings = this.registry.settings;
    let target: Target;
    try {
      target = await this.targetSoon(call, settings, cancellation);
    } catch (error) {
      return await this.refuse(call, call.provider ?? '', failureOf(error), sink);
    }
    try {
      return await this.attempts(target, settings, sink, cancellation, trace);
    } catch (error) {
      return await this.refuse(call, target.provider, withoutSecret(failureOf(error), target.secret), sink);
    }
  }

  private async attempts(
    target: Target,
    settings: RouterSettings,
    sink: FrameSink,
    cancellation: Cancellation,
    trace: AttemptTrace,
  ): Promise<ChatOutcome> {
    const limits = limitsOf(settings);
    for (let tries = 1; ; tries++) {
      const traced = trace.begin(target.provider, tries);
      const attempt = new Attempt(this.bus, target.provider, target.request, sink, limits, traced.trace);
      cancellation.attempt = attempt;
      if (cancellation.cancelled) attempt.abort();
      const outcome = await attempt.run();
      traced.end(outcome);
      this.registry.seen(target.provider, !(outcome.kind === 'failed' && outcome.failure.code === ROUTER_CODES.providerUnavailable));
      if (outcome.kind !== 'failed') return await this.finish(target, attempt, outcome, sink);
      const failure = withoutSecret(outcome.failure, target.secret);
      if (!attempt.forwarded && failure.code === ROUTER_CODES.providerUnavailable && (await this.mayCome(target.provider, cancellation))) {
        tries -= 1; // it was not there to be asked
        continue;
      }
      const next = attempt.forwarded
        ? null
        : pauseBefore(tries, failure, settings.settings, limits.deadline - performance.now(), this.timing.random());
      if (next === null || 'refusal' in next) {
        const { message, retryable } =
          next === null
            ? { message: failure.message, retryable: isRetryable(failure.kind) }
            : { message: next.refusal, retryable: next.retryable };
        return await this.finish(target, attempt, { kind: 'failed', failure: { ...failure, message }, retryable }, sink);
      }
      await this.timing.sleep(next.ms, cancellation.signal);
      if (cancellation.cancelled) return await this.finish(target, attempt, { kind: 'aborted' }, sink);
    }
  }

  /** Writes the terminal frame. */
  private async finish(
    target: Target,
    attempt: Attempt,
    outcome: Exclude<AttemptOutcome, { kind: 'failed' }> | { kind: 'failed'; failure: Failure; retryable: boolean },
    sink: FrameSink,
  ): Promise<ChatOutcome> {
    await attempt.release();
    const { provider, request } = target;
    const base = { provider, model: request.model };
    switch (outcome.kind) {
      case 'done': {
        const message = priced(outcome.message, target.model);
        await sendLast(sink, { type: 'done', message });
        return { ...base, message };
      }
      case 'aborted': {
        const message = priced({ ...draft(provider, request.model, attempt.partial), stop_reason: 'aborted' }, target.model);
        await sendLast(sink, { type: 'done', message });
        return { ...base, message };
      }
      case 'failed': {
        const { terminal, code, message: text, kind } = outcome.failure;
        const start = terminal ?? draft(provider, request.model, attempt.partial);
        const message = priced({ ...start, stop_reason: 'error', error_kind: kind, error_message: text }, target.model);
        await sendLast(sink, { type: 'error', error: message });
        return { ...base, message, failure: { code, message: text, kind, retryable: outcome.retryable } };
      }
      default: {
        const never: never = outcome;
        throw new Error(`no such outcome: ${String(never)}`);
      }
    }
  }

  /** Ends a chat that never reached a provider. */
  private async refuse(call: ChatCall, provider: string, failure: Failure, sink: FrameSink): Promise<ChatOutcome> {
    const { code, message: text, kind } = failure;
    const start = draft(provider, call.model, new PartialMessage());
    const message: AssistantMessage = { ...start, stop_reason: 'error', error_kind: kind, error_message: text };
    await sendLast(sink, { type: 'error', error: message });
    return { message, provider, model: call.model, failure: { code, message: text, kind, retryable: isRetryable(kind) } };
  }

  /** The target of a call; while providers have yet to come back, one that is not there is waited for. */
  private async targetSoon(call: ChatCall, settings: RouterSettings, cancellation: Cancellation): Promise<Target> {
    for (;;) {
      try {
        return this.target(call, settings);
      } catch (error) {
        const code = errorCode(error);
        const isAbsent = code === ROUTER_CODES.unknownProvider || code === ROUTER_CODES.noProviderForModel;
        if (!isAbsent || !(await this.mayCome(call.provider ?? null, cancellation))) throw error;
      }
    }
  }

  /** Waits a moment for a provider that may be on its way back; false when none is expected, or the chat is over. */
  private async mayCome(provider: string | null, cancellation: Cancellation): Promise<boolean> {
    if (!this.registry.expects(provider) || cancellation.cancelled) return false;
    await this.timing.sleep(EXPECT_LOOK_MS, cancellation.signal);
    return !cancellation.cancelled;
  }

  private target(call: ChatCall, settings: RouterSettings): Target {
    const { provider } = route(call.model, call.provider, settings, this.registry);
    const resolution = this.registry.resolveOrThrow(provider);
    const model = this.registry.catalog.get(provider, call.model);
    if (call.response_format != null && model?.supports_structured_output === false) {
      throw new HarnessError(
        ROUTER_CODES.structuredOutputUnsupported,
        `model ${call.model} of ${provider} cannot be held to a JSON format; leave out response_format`,
      );
    }
    const request: Target['request'] = {
      model: call.model,
      messages: call.messages,
      session_id: call.session_id,
      system_prompt: call.system_prompt,
      system_sections: call.system_sections,
      tools: call.tools,
      response_format: call.response_format,
      thinking_level: call.thinking_level,
      max_output_tokens: outputBudget(model, call.max_output_tokens, resolution.max_tokens, settings.settings.output_token_max),
      provider_options: call.provider_options?.[provider],
      model_meta: model,
    };
    return { provider, secret: resolution.credential, model, request };
  }
}

/** How long a chat waits at its end for a caller that does not read. */
const LAST_FRAME_MS = 5_000;

async function sendLast(sink: FrameSink, frame: StreamFrame): Promise<void> {
  const behind = sink(frame);
  if (behind === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LAST_FRAME_MS);
  });
  await Promise.race([behind, limit]).finally(() => clearTimeout(timer));
}

/** The response of `router::chat` for an outcome. */
function responseOf({ message, provider, model, failure }: ChatOutcome): ChatResponse {
  const base = { provider, model, stop_reason: message.stop_reason, usage: message.usage ?? null };
  return failure === undefined ? { ok: true, ...base } : { ok: false, ...base, error: failure };
}

function limitsOf({ settings }: RouterSettings): AttemptLimits {
  return {
    deadline: performance.now() + settings.stream_timeout_ms,
    streamTimeoutMs: settings.stream_timeout_ms,
    idleTimeoutMs: settings.idle_timeout_ms,
    firstByteTimeoutMs: settings.first_byte_timeout_ms ?? settings.idle_timeout_ms,
  };
}

/** A message made of what has arrived. */
function draft(provider: string, model: string, partial: PartialMessage): AssistantMessage {
  return {
    role: 'assistant',
    content: partial.content(),
    model,
    provider,
    stop_reason: 'error',
    usage: partial.usageSoFar(),
    timestamp: Date.now(),
  };
}

/** The message with its cost, when the provider gave none and the catalog has a price. */
function priced(message: AssistantMessage, model: Model | undefined): AssistantMessage {
  const usage: Usage | null | undefined = message.usage;
  if (usage == null || usage.cost_usd != null) return message;
  const cost = costOf(model, usage);
  return cost === null ? message : { ...message, usage: { ...usage, cost_usd: cost } };
}

const withoutSecret = (failure: Failure, secret: string | null): Failure => ({ ...failure, message: redact(failure.message, secret) });
