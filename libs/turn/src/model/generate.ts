import {
  type AgentFunction,
  type AgentMessage,
  type AssistantMessage,
  BUS_CODES,
  type ChatRequest,
  type ChatResponse,
  errorCode,
  errorMessage,
  type ResponseFormat,
  requestId,
  type StreamFrame,
} from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { TurnFailure } from '../machine/decision.js';
import type { TurnRecord } from '../record/record.js';
import { MessageAccumulator } from './accumulator.js';
import { admitMessage } from './admit.js';
import { cleanContent, cut } from './text.js';

/** How much of what a provider says of an error is kept, in characters. */
const MAX_ERROR_TEXT = 4_000;

/** One generation to ask the router for. */
export interface Generation {
  system_prompt: string;
  /** The part of the system prompt that is the same in other sessions too. */
  stable_prompt: string;
  messages: AgentMessage[];
  tools: AgentFunction[];
  response_format?: ResponseFormat;
}

/** Told of the stream while it comes. */
export interface GenerationObserver {
  delta(kind: 'text' | 'thinking', delta: string): void;
  /** Called at most every `stream_coalesce_ms`, with the message so far. */
  sketch(partial: AssistantMessage): void;
}

export type GenerationOutcome =
  | { kind: 'message'; message: AssistantMessage }
  | { kind: 'failed'; partial: AssistantMessage | null; failure: TurnFailure }
  | { kind: 'aborted'; partial: AssistantMessage | null };

export interface GenerateOptions {
  timeoutMs: number;
  coalesceMs: number;
  /** Whether providers are to keep the beginning of the request in their cache. */
  cache: boolean;
  signal: AbortSignal;
  now: () => number;
}

/**
 * Streams one completion through `router::chat`. A failure is an outcome, with what had come until then. Throws only `connection_lost`: that is no
 * failure of the model's, and its step begins again.
 */
export async function generate(
  bus: Bus,
  record: TurnRecord,
  generation: Generation,
  observer: GenerationObserver,
  options: GenerateOptions,
): Promise<GenerationOutcome> {
  const { model, provider, thinking_level, metadata } = record.options;
  const accumulator = new MessageAccumulator(model, provider ?? '');
  const partial = (): AssistantMessage | null => cleaned(accumulator.partial(options.now()));
  if (options.signal.aborted) return { kind: 'aborted', partial: null };
  const channel = await bus.createChannel();
  const close = (): void => channel.reader.close();
  options.signal.addEventListener('abort', close, { once: true });
  const request: ChatRequest = {
    writer_ref: channel.writerRef,
    model,
    messages: generation.messages,
    request_id: requestId(record.turn_id, record.step),
    session_id: record.session_id,
    system_prompt: generation.system_prompt,
    ...cacheHints(generation, options.cache),
    ...(provider === null ? {} : { provider }),
    ...(generation.tools.length === 0 ? {} : { tools: generation.tools }),
    ...(generation.response_format === undefined ? {} : { response_format: generation.response_format }),
    ...(thinking_level === null ? {} : { thinking_level }),
    ...(metadata === null ? {} : { metadata }),
  };
  const call = bus.trigger<ChatResponse>({
    function_id: 'router::chat',
    payload: request,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
  });
  const answer = call.then(
    (response) => ({ response, error: undefined }),
    (error: unknown) => {
      close(); // no more frames will come: let the reader end
      return { response: undefined, error };
    },
  );
  try {
    await read(channel.reader.next.bind(channel.reader), accumulator, observer, options, partial);
  } finally {
    options.signal.removeEventListener('abort', close);
    close();
  }
  if (options.signal.aborted) {
    await abort(bus, requestId(record.turn_id, record.step));
    return { kind: 'aborted', partial: partial() };
  }
  const { terminal } = accumulator;
  if (terminal === null) {
    const { response, error } = await answer;
    if (errorCode(error) === BUS_CODES.connectionLost) throw error;
    return { kind: 'failed', partial: partial(), failure: failureOf(response, error, model) };
  }
  const admission = admitMessage(terminal.message, { model, provider: provider ?? '', now: options.now() });
  if ('fault' in admission) return { kind: 'failed', partial: partial(), failure: unusable(admission.fault, model) };
  const { error_message: said } = admission.message;
  const message = {
    ...admission.message,
    content: cleanContent(admission.message.content),
    ...(said == null ? {} : { error_message: cut(said, MAX_ERROR_TEXT) }),
  };
  if (!terminal.failed && message.stop_reason !== 'error' && message.stop_reason !== 'aborted') return { kind: 'message', message };
  const { response } = await answer;
  return { kind: 'failed', partial: message.content.length > 0 ? message : partial(), failure: failureOfMessage(message, response) };
}

/** What tells providers of their caches: where the part ends that other sessions share, or that nothing is to be kept. */
function cacheHints({ system_prompt, stable_prompt: stable }: Generation, cache: boolean): Partial<ChatRequest> {
  if (!cache) return { provider_options: { anthropic: { cache: false }, openai: { cache: false } } };
  if (stable === '' || !system_prompt.startsWith(stable)) return {};
  const rest = system_prompt.slice(stable.length);
  return {
    system_sections: [{ text: stable, cache_boundary: true }, ...(rest === '' ? [] : [{ text: rest, cache_boundary: false }])],
  };
}

/** Tells the router that nobody reads any more. The closed stream says so too, but an engine may pass that on only with the next frame. */
async function abort(bus: Bus, request_id: string): Promise<void> {
  await bus.trigger({ function_id: 'router::abort', payload: { request_id }, action: { type: 'void' } }).catch(() => undefined);
}

async function read(
  next: () => Promise<readonly unknown[] | null>,
  accumulator: MessageAccumulator,
  observer: GenerationObserver,
  options: GenerateOptions,
  partial: () => AssistantMessage | null,
): Promise<void> {
  let sketchedAt = options.now();
  let late: NodeJS.Timeout | undefined;
  const sketch = (): void => {
    clearTimeout(late);
    late = undefined;
    sketchedAt = options.now();
    const soFar = partial();
    if (soFar !== null) observer.sketch(soFar);
  };
  try {
    for (;;) {
      const frames = await next();
      if (frames === null) return;
      for (const frame of frames) {
        const added = accumulator.take(frame as StreamFrame);
        if (added !== null) observer.delta(added.kind, added.delta);
      }
      if (accumulator.terminal !== null) return;
      const wait = options.coalesceMs - (options.now() - sketchedAt);
      if (wait <= 0) sketch();
      else late ??= setTimeout(sketch, wait); // a model that pauses now leaves nothing behind
    }
  } finally {
    clearTimeout(late);
  }
}

const cleaned = (message: AssistantMessage | null): AssistantMessage | null =>
  message === null ? null : { ...message, content: cleanContent(message.content) };

const CODE_OF_KIND = {
  auth_expired: 'llm.auth_expired',
  rate_limited: 'llm.rate_limited',
  context_overflow: 'harness.context_overflow',
  transient: 'llm.transient',
  permanent: 'llm.permanent',
} as const;

const unusable = (fault: string, model: string): TurnFailure => ({
  code: 'llm.permanent',
  message: `the answer of the model cannot be used: ${fault}`,
  retryable: false,
  kind: 'permanent',
  model,
});

function failureOfMessage(message: AssistantMessage, response: ChatResponse | undefined): TurnFailure {
  if (message.stop_reason === 'aborted') {
    return {
      code: 'llm.aborted',
      message: 'the generation was aborted',
      retryable: false,
      provider: message.provider,
      model: message.model,
    };
  }
  const kind = message.error_kind ?? 'permanent';
  return {
    code: CODE_OF_KIND[kind],
    message: message.error_message ?? response?.error?.message ?? 'the model gave an error without a message',
    retryable: kind === 'transient' || kind === 'rate_limited',
    kind,
    provider: message.provider,
    model: message.model,
  };
}

function failureOf(response: ChatResponse | undefined, error: unknown, model: string): TurnFailure {
  if (response?.error != null) {
    const { code, message, retryable, kind } = response.error;
    return {
      code,
      message,
      retryable: retryable === true,
      provider: response.provider,
      model: response.model,
      ...(kind === undefined ? {} : { kind }),
    };
  }
  if (error === undefined)
    return { code: 'llm.incomplete', message: 'the stream ended without its last frame', retryable: true, kind: 'transient', model };
  const code = errorCode(error) ?? 'harness.dependency';
  return { code, message: errorMessage(error), retryable: code === 'timeout' || code === 'invocation_stopped', model };
}
