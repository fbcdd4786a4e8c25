import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { IIIClient } from 'iii-sdk';
import { BUS_CODES, errorMessage, HarnessError, type JsonValue, type StreamChannelRef, splitCode } from '#libs/contracts';
import {
  type Bus,
  BusError,
  type Channel,
  type ChannelReader,
  type ChannelWriter,
  DEFAULT_TIMEOUT_MS,
  type FunctionDefinition,
  type FunctionHandler,
  type InvocationContext,
  type RegisterTriggerInput,
  type Registration,
  type TraceContext,
  type TriggerRequest,
  type TriggerTypeDefinition,
  type TriggerTypeHandler,
} from '../bus.js';
import { withoutEngineKeys } from '../engine-keys.js';
import { inherit } from '../provenance.js';
import { BoundTriggers } from './bound.js';
import { socketReader, socketWriter } from './channels.js';
import type { SdkConnection } from './connection.js';
import { withRefs } from './refs.js';
import type { SdkTrace } from './trace.js';

/** Functions that are remembered to have been there. */
const MAX_ANSWERED = 10_000;
/** How often a function that has yet to come back is looked for, in ms. */
const RETURN_LOOK_MS = 200;

/** A bus whose engine is at the other end of an iii-sdk client: a real iii engine, or a gateway. */
export class SdkBus implements Bus {
  /** What is bound to the trigger types of this worker. */
  readonly bound = new BoundTriggers();
  /** Functions that have answered: these may be on their way back when they are not there. */
  private readonly answered = new Set<string>();

  constructor(
    private readonly client: IIIClient,
    /** The engine's WebSocket address, which its channels share. */
    private readonly url: string,
    readonly connection: SdkConnection,
    /** Under what name this worker is listed. */
    readonly name: string,
    private readonly trace: SdkTrace,
  ) {}

  async trigger<T = unknown>(request: TriggerRequest): Promise<T> {
    for (;;) {
      try {
        // An engine says of a result that is null that there is none; a call for no result has none.
        const result = (await this.once<T>(request)) ?? ((request.action?.type === 'void' ? undefined : null) as T);
        if (this.answered.size < MAX_ANSWERED) this.answered.add(request.function_id);
        return result;
      } catch (error) {
        if (!(error instanceof BusError) || !(await this.mayComeTrue(request, error))) throw error;
      }
    }
  }

  /** True when the same call may succeed now: it does no harm twice, or its function has yet to come back with its worker. */
  private async mayComeTrue({ function_id, repeatable, signal }: TriggerRequest, { code }: BusError): Promise<boolean> {
    if (signal?.aborted === true) return false;
    if (code === BUS_CODES.connectionLost) return repeatable === true;
    if (code !== BUS_CODES.functionNotFound || !this.connection.isFresh || !this.answered.has(function_id)) return false;
    await delay(RETURN_LOOK_MS, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    return true;
  }

  private async once<T>({ function_id, payload, action, timeoutMs, metadata, signal, trace }: TriggerRequest): Promise<T> {
    const stopped = (): BusError => new BusError(BUS_CODES.stopped, `the call of ${function_id} was stopped`, function_id);
    const cutOff = (): BusError =>
      new BusError(
        BUS_CODES.connectionLost,
        `the connection to the engine was lost while ${function_id} was asked; it may have run`,
        function_id,
      );
    if (signal?.aborted === true) throw stopped();
    const request = { function_id, payload, action, timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS, metadata };
    const answer = this.trace
      .along(trace, () => this.client.trigger<unknown, T>(request))
      .catch((error: unknown) => {
        throw thrownBy(error, function_id);
      });
    const endings: (() => void)[] = [];
    const ended = new Promise<never>((_, reject) => {
      if (signal !== undefined) {
        const leave = (): void => reject(stopped());
        signal.addEventListener('abort', leave, { once: true });
        endings.push(() => signal.removeEventListener('abort', leave));
      }
      // The SDK would wait for its timeout. What is asked for while there is no connection is sent with the next one, which may be lost, too.
      endings.push(this.connection.onLost(() => reject(cutOff())));
    });
    try {
      return await Promise.race([answer, ended]);
    } finally {
      for (const end of endings) end();
    }
  }

  registerFunction({ id, ...definition }: FunctionDefinition, handler: FunctionHandler): Registration {
    const options = definition as Parameters<IIIClient['registerFunction']>[2];
    return this.client.registerFunction(
      id,
      async (payload: unknown, metadata?: JsonValue) =>
        await handler(withRefs(withoutEngineKeys(payload)), new SdkInvocation(this, id, metadata, this.trace.current)),
      options,
    );
  }

  registerTrigger({ id = randomUUID(), type, function_id, config, metadata }: RegisterTriggerInput): Registration {
    const trigger = this.client.registerTrigger({
      type,
      function_id,
      config,
      metadata: metadata as { [key: string]: unknown } | undefined,
    });
    return { id, unregister: () => trigger.unregister() };
  }

  registerTriggerType(definition: TriggerTypeDefinition, handler: TriggerTypeHandler): Registration {
    const type = definition.id;
    const noted = this.bound.noting(type, handler);
    return this.client.registerTriggerType<JsonValue>(definition, {
      registerTrigger: async (trigger) =>
        await noted.registerTrigger({ ...trigger, type, metadata: trigger.metadata as JsonValue | undefined }),
      unregisterTrigger: async (trigger) =>
        await noted.unregisterTrigger({ ...trigger, type, metadata: trigger.metadata as JsonValue | undefined }),
    });
  }

  async createChannel(options: { bufferSize?: number } = {}): Promise<Channel> {
    const refs = await this.trigger<{ writer: StreamChannelRef; reader: StreamChannelRef }>({
      function_id: 'engine::channels::create',
      payload: options.bufferSize === undefined ? {} : { buffer_size: options.bufferSize },
    });
    return new SocketChannel(this, refs.writer, refs.reader);
  }

  openWriter(ref: StreamChannelRef): ChannelWriter {
    return socketWriter(this.url, ref);
  }

  openReader(ref: StreamChannelRef): ChannelReader {
    return socketReader(this.url, ref);
  }

  /** Leaves the engine; what this worker registered goes with it. */
  async close(): Promise<void> {
    await this.client.shutdown();
  }
}

/** A channel whose ends are opened when they are asked for: the other one is for another worker. */
class SocketChannel implements Channel {
  private ownWriter: ChannelWriter | undefined;
  private ownReader: ChannelReader | undefined;

  constructor(
    private readonly bus: SdkBus,
    readonly writerRef: StreamChannelRef,
    readonly readerRef: StreamChannelRef,
  ) {}

  get writer(): ChannelWriter {
    this.ownWriter ??= this.bus.openWriter(this.writerRef);
    return this.ownWriter;
  }

  get reader(): ChannelReader {
    this.ownReader ??= this.bus.openReader(this.readerRef);
    return this.ownReader;
  }
}

/** What a handler sees of its call. The protocol does not tell a worker that its caller has given up, so the signal rests. */
class SdkInvocation implements InvocationContext {
  readonly signal = new AbortController().signal;

  constructor(
    private readonly bus: SdkBus,
    readonly function_id: string,
    readonly metadata: JsonValue | undefined,
    readonly trace: TraceContext | undefined,
  ) {}

  trigger<T>(request: TriggerRequest): Promise<T> {
    const nested = inherit(request, this.metadata);
    return this.bus.trigger<T>(nested.trace === undefined && this.trace !== undefined ? { ...nested, trace: this.trace } : nested);
  }
}

/** The error that an in-process target would have thrown: the SDK puts a worker's own code into the message only. */
function thrownBy(error: unknown, functionId: string): Error {
  const message = errorMessage(error);
  const code = (error as { code?: unknown }).code;
  if (code === 'TIMEOUT' || code === 'timeout') return new BusError('timeout', message, functionId);
  const own = splitCode(message);
  if (own !== null) return new HarnessError(own.code, own.detail, { cause: error });
  if (typeof code === 'string' && code !== 'invocation_failed') return new BusError(code, message, functionId);
  return new Error(message.replace(/^handler error: /, ''), { cause: error });
}
