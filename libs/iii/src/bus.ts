import type { JsonValue, Schema, StreamChannelRef } from '#libs/contracts';

/** How a call is delivered: for its result (default), for no result, or through a queue. */
export type TriggerAction = { type: 'void' } | { type: 'enqueue'; queue: string };

/** One call of a function. */
export interface TriggerRequest {
  function_id: string;
  payload: unknown;
  action?: TriggerAction;
  /** How long to wait for the result, in ms; 30000 when absent. A call that timed out may still run. */
  timeoutMs?: number;
  /** Travels beside the payload; `agent` in it is the provenance of a call made for a model. */
  metadata?: JsonValue;
  /** Asking twice does no harm: when the connection to the engine is lost meanwhile, it is asked again once that is back. */
  repeatable?: true;
  /** Ends the call early. Only an in-process target can see it; the caller is released in any case. */
  signal?: AbortSignal;
  /** The trace that the call belongs to; nested calls inherit it. */
  trace?: TraceContext;
}

/** W3C trace context, as it travels beside a call. */
export interface TraceContext {
  traceparent?: string;
  baggage?: string;
}

/** What a handler gets beside its payload. */
export interface InvocationContext {
  readonly function_id: string;
  readonly metadata: JsonValue | undefined;
  /** Aborted when the caller gave up or the timeout passed. */
  readonly signal: AbortSignal;
  /** Id of the worker that calls; undefined when the engine itself does. */
  readonly caller?: string | undefined;
  /** How the call is delivered; a result of a void call is not waited for. */
  readonly action?: TriggerAction | undefined;
  readonly trace?: TraceContext | undefined;
  /** Calls another function; provenance (`metadata.agent`) is inherited. */
  trigger<T = unknown>(request: TriggerRequest): Promise<T>;
}

export type FunctionHandler = (payload: unknown, context: InvocationContext) => unknown;

/** What a function says of itself when it is registered. */
export interface FunctionDefinition {
  id: string;
  description?: string;
  request_format?: Schema;
  response_format?: Schema;
  /** `{internal: true}` hides the function from the default list. */
  metadata?: { readonly [key: string]: JsonValue };
}

/** A binding of a function to a trigger type. */
export interface TriggerRegistration {
  id: string;
  type: string;
  function_id: string;
  config: JsonValue;
  metadata?: JsonValue;
}
export type RegisterTriggerInput = Omit<TriggerRegistration, 'id'> & { id?: string };

export interface TriggerTypeDefinition {
  id: string;
  description: string;
  /** Schema of a binding's configuration. */
  trigger_request_format?: Schema;
  /** Schema of the payload that a bound function gets. */
  call_request_format?: Schema;
}
/** The provider's side of a trigger type. `registerTrigger` throws to refuse a binding, which then stays parked. */
export interface TriggerTypeHandler {
  registerTrigger(trigger: TriggerRegistration): void | Promise<void>;
  unregisterTrigger(trigger: TriggerRegistration): void | Promise<void>;
  /** True for a binding that holds even while the worker of its function is away; without it none does. */
  isGuard?(trigger: TriggerRegistration): boolean;
}

/** A handle that takes a registration back. Doing so twice is harmless. */
export interface Registration {
  readonly id: string;
  unregister(): void;
}

/** The write end of a channel. */
export interface ChannelWriter {
  /** Sends one JSON message. Returns a promise only when the reader is behind: await it before the next one. */
  send(message: unknown): void | Promise<void>;
  close(): void;
  /** Aborted when the reader has closed its end, which is how a consumer cancels. */
  readonly signal: AbortSignal;
}
/** The read end of a channel. */
export interface ChannelReader {
  /** All messages that have arrived, in order, waiting for at least one; null when the writer has closed. */
  next(): Promise<readonly unknown[] | null>;
  /** Closes the channel; the writer sees it as a cancel. */
  close(): void;
}
export interface Channel {
  writer: ChannelWriter;
  reader: ChannelReader;
  writerRef: StreamChannelRef;
  readerRef: StreamChannelRef;
}

/** The connection of one worker to an engine; the shape of the iii-sdk client. */
export interface Bus {
  trigger<T = unknown>(request: TriggerRequest): Promise<T>;
  registerFunction(definition: FunctionDefinition, handler: FunctionHandler): Registration;
  /** Binds a function to a trigger type; waits in the engine when the type is not there yet. */
  registerTrigger(trigger: RegisterTriggerInput): Registration;
  registerTriggerType(definition: TriggerTypeDefinition, handler: TriggerTypeHandler): Registration;
  /** `bufferSize` is the number of messages that a reader may be behind; 64 by default, 1024 at most. */
  createChannel(options?: { bufferSize?: number }): Promise<Channel>;
  openWriter(ref: StreamChannelRef): ChannelWriter;
  openReader(ref: StreamChannelRef): ChannelReader;
}

/** Injection token of the `Bus`. */
export const BUS = Symbol('harness:bus');

/** An error of the bus itself, as opposed to one that a function threw. */
export class BusError extends Error {
  override readonly name = 'BusError';
  constructor(
    /** E.g. `function_not_found`, `timeout`, `invocation_stopped`. */
    readonly code: string,
    readonly detail: string,
    readonly functionId?: string,
  ) {
    super(`${code}: ${detail}`);
  }
}

/** Default of `TriggerRequest.timeoutMs`. */
export const DEFAULT_TIMEOUT_MS = 30_000;
