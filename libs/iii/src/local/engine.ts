import { randomUUID } from 'node:crypto';
import { errorMessage, type JsonValue } from '#libs/contracts';
import {
  type Bus,
  BusError,
  DEFAULT_TIMEOUT_MS,
  type FunctionDefinition,
  type FunctionHandler,
  type InvocationContext,
  type RegisterTriggerInput,
  type Registration,
  type TraceContext,
  type TriggerAction,
  type TriggerRequest,
  type TriggerTypeDefinition,
  type TriggerTypeHandler,
} from '../bus.js';
import { agentOf, inherit } from '../provenance.js';
import { ChannelTable } from './channels.js';
import { discoveryFunctions } from './discovery.js';
import { type FunctionRecord, FunctionTable } from './functions.js';
import { awayDetail, patienceFor } from './guards.js';
import type { EngineTables } from './tables.js';
import { TriggerTable } from './triggers.js';
import { defaultWorkerName, type WorkerRecord, WorkerTable } from './workers.js';

/** Where enqueue actions go. */
export interface QueueSink {
  /** Stores the job durably before it returns its receipt id. Throws when there is no such queue. */
  enqueue(job: { queue: string; function_id: string; payload: JsonValue; metadata?: JsonValue }): Promise<string>;
}

export interface LocalEngineOptions {
  /** Told of what went wrong where no caller waits: void calls, parked triggers. */
  report?: (message: string, context: { [key: string]: unknown }) => void;
  /** True for functions that no call made for a model (`metadata.agent`) may reach, whoever has passed it on. */
  closedToModels?: (functionId: string) => boolean;
}

/**
 * An iii engine inside the process: functions, triggers, channels, discovery and actions, with no network.
 * Each worker talks to it through a `Bus` of its own, so that what a worker registered goes when it leaves.
 */
export class LocalEngine implements EngineTables {
  readonly functions = new FunctionTable();
  readonly triggers: TriggerTable;
  readonly workers = new WorkerTable();
  readonly channels = new ChannelTable();
  readonly report: (message: string, context: { [key: string]: unknown }) => void;
  /** True while workers of other processes can connect. */
  isReachable = false;
  private queue: QueueSink | undefined;

  constructor(private readonly options: LocalEngineOptions = {}) {
    this.report = options.report ?? ((message) => process.emitWarning(message));
    this.triggers = new TriggerTable((message) => this.report(message, {}));
    const own = this.connect({ name: 'engine' });
    for (const { definition, handler } of discoveryFunctions(this)) own.registerFunction(definition, handler);
  }

  /** Gives enqueue actions a queue; without one they fail with `enqueue_error`. */
  useQueue(queue: QueueSink): void {
    this.queue = queue;
  }

  /** Connects a worker. */
  connect(worker: { name?: string; runtime?: string; version?: string; remote?: boolean } = {}): LocalBus {
    const record: WorkerRecord = {
      id: randomUUID(),
      name: worker.name ?? defaultWorkerName(),
      runtime: worker.runtime ?? 'node',
      version: worker.version ?? process.version,
      remote: worker.remote ?? false,
      connected_at: Date.now(),
    };
    this.workers.add(record);
    return new LocalBus(this, record);
  }

  /** Delivers one call of the worker with the id `caller`. Never resolves after its timeout or its signal. */
  invoke(request: TriggerRequest, caller?: string): Promise<unknown> {
    const { action, function_id } = request;
    if (agentOf(request.metadata) !== undefined && this.options.closedToModels?.(function_id) === true) {
      return Promise.reject(new BusError('FORBIDDEN', `${function_id} is not open to calls that are made for a model`, function_id));
    }
    if (action?.type === 'enqueue') return this.enqueue(request, action.queue);
    const record = this.functions.get(request.function_id);
    if (record === undefined) return this.missing(request, caller);
    if (action?.type === 'void') {
      this.run(request, record, caller).catch((error: unknown) => {
        this.report('a void call failed', { function_id: request.function_id, error: errorMessage(error) });
      });
      return Promise.resolve(undefined);
    }
    return this.run(request, record, caller);
  }

  /** A call of what is not there: the function of a guard is waited for while its worker may still come back. */
  private async missing(request: TriggerRequest, caller: string | undefined): Promise<unknown> {
    const { function_id, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = request;
    const record = this.triggers.guardOf(function_id);
    if (record?.guard == null) throw new BusError('function_not_found', `no function ${function_id} is registered`, function_id);
    const { worker, away_since } = record.guard;
    const begun = Date.now();
    const patience = this.isReachable && away_since !== null ? Math.min(timeoutMs, patienceFor(away_since, begun)) : 0;
    if (patience > 0 && (await this.functions.appearance(function_id, patience, signal)) !== undefined) {
      return await this.invoke({ ...request, timeoutMs: Math.max(1, timeoutMs - (Date.now() - begun)) }, caller);
    }
    throw new BusError('function_not_found', awayDetail(record.trigger, worker), function_id);
  }

  private run(request: TriggerRequest, { handler, worker }: FunctionRecord, caller: string | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const context = new LocalInvocation(this, request, worker.id, caller);
      const give = (code: string, detail: string): void => {
        finish();
        context.abort();
        reject(new BusError(code, detail, request.function_id));
      };
      const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
      const timer = setTimeout(
        () => give('timeout', `${request.function_id} gave no result within ${timeoutMs} ms`),
        Math.min(timeoutMs, 2 ** 31 - 1),
      );
      const onAbort = (): void => give('invocation_stopped', `the call of ${request.function_id} was stopped`);
      const finish = (): void => {
        clearTimeout(timer);
        request.signal?.removeEventListener('abort', onAbort);
      };
      if (request.signal?.aborted === true) return onAbort();
      request.signal?.addEventListener('abort', onAbort, { once: true });
      Promise.resolve()
        .then(() => handler(request.payload, context))
        .then(
          (result) => {
            finish();
            resolve(result);
          },
          (error: unknown) => {
            finish();
            reject(error as Error);
          },
        );
    });
  }

  private async enqueue(request: TriggerRequest, queue: string): Promise<{ messageReceiptId: string }> {
    if (this.queue === undefined) throw new BusError('enqueue_error', 'this engine has no queue', request.function_id);
    const { function_id, payload, metadata } = request;
    return { messageReceiptId: await this.queue.enqueue({ queue, function_id, payload: payload as JsonValue, metadata }) };
  }
}

/** What a handler sees of its call. The abort signal is made only when somebody asks for it. */
class LocalInvocation implements InvocationContext {
  private controller: AbortController | undefined;
  private aborted = false;

  constructor(
    private readonly engine: LocalEngine,
    private readonly request: TriggerRequest,
    private readonly owner: string,
    readonly caller: string | undefined,
  ) {}

  get function_id(): string {
    return this.request.function_id;
  }

  get metadata(): JsonValue | undefined {
    return this.request.metadata;
  }

  get action(): TriggerAction | undefined {
    return this.request.action;
  }

  get trace(): TraceContext | undefined {
    return this.request.trace;
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.aborted) this.controller.abort();
    return this.controller.signal;
  }

  abort(): void {
    this.aborted = true;
    this.controller?.abort();
  }

  trigger<T>(request: TriggerRequest): Promise<T> {
    const trace = request.trace ?? this.request.trace;
    const nested = inherit(request, this.request.metadata);
    return this.engine.invoke(trace === undefined ? nested : { ...nested, trace }, this.owner) as Promise<T>;
  }
}

/** The connection of one worker to a local engine. */
export class LocalBus implements Bus {
  constructor(
    private readonly engine: LocalEngine,
    readonly worker: WorkerRecord,
  ) {}

  trigger<T = unknown>(request: TriggerRequest): Promise<T> {
    return this.engine.invoke(request, this.worker.id) as Promise<T>;
  }

  registerFunction(definition: FunctionDefinition, handler: FunctionHandler): Registration {
    const registration = this.engine.functions.add(this.worker, definition, handler);
    this.engine.triggers.functionIsBack(definition.id);
    return registration;
  }

  /** `refused` is told when the provider of the type does not take the binding, which then waits. */
  registerTrigger(trigger: RegisterTriggerInput, refused?: (error: unknown) => void): Registration {
    return this.engine.triggers.add(this.worker, trigger, refused);
  }

  registerTriggerType(definition: TriggerTypeDefinition, handler: TriggerTypeHandler): Registration {
    return this.engine.triggers.addType(this.worker, definition, handler);
  }

  createChannel(options: { bufferSize?: number } = {}): ReturnType<Bus['createChannel']> {
    return Promise.resolve(this.engine.channels.create(options.bufferSize));
  }

  openWriter(ref: Parameters<Bus['openWriter']>[0]): ReturnType<Bus['openWriter']> {
    return this.engine.channels.openWriter(ref);
  }

  openReader(ref: Parameters<Bus['openReader']>[0]): ReturnType<Bus['openReader']> {
    return this.engine.channels.openReader(ref);
  }

  /** Leaves the engine; everything that this worker registered goes, but the guards of one that was `lost`. */
  async disconnect(how: 'left' | 'lost' = 'left'): Promise<void> {
    const { functions, triggers, channels, workers } = this.engine;
    const told = triggers.removeOf(this.worker, how, (id) => functions.get(id)?.worker === this.worker);
    functions.removeOf(this.worker);
    channels.removeOf(this.worker.id);
    workers.remove(this.worker);
    await told;
  }
}
