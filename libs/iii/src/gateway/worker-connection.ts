import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { JsonValue } from '#libs/contracts';
import { BusError, type FunctionHandler, type Registration, type TraceContext, type TriggerRequest } from '../bus.js';
import type { LocalBus, LocalEngine } from '../local/engine.js';
import type { GatewayLimits } from './limits.js';
import { type EngineMessage, NAMESPACE, type WorkerMessage } from './messages.js';
import { OutgoingCalls } from './outgoing-calls.js';
import { baggageFor, withProvenance } from './provenance.js';
import { errorBody } from './remote-errors.js';
import { RemoteTriggerType } from './remote-trigger-type.js';
import { describeWorker } from './worker-metadata.js';

type Of<T extends WorkerMessage['type']> = Extract<WorkerMessage, { type: T }>;

/** A call from a worker has no limit of time here: the caller has its own, and gives up by leaving. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** The function by which a worker says what it is. */
const REGISTER_WORKER = 'engine::workers::register';
const CREATE_CHANNEL = 'engine::channels::create';

/** How a connection reaches its worker. */
export interface Wire {
  /** False when the worker is gone. Throws when JSON cannot express the message. */
  send(message: EngineMessage): boolean;
  fault(code: string, message: string): void;
  close(code: number, reason: string): void;
}

/** One connected worker: what it registered, and the calls under way in both directions. */
export class WorkerConnection {
  /** Proves, on a later connection, that it comes from this worker. */
  readonly reattachToken = randomBytes(24).toString('base64url');
  readonly bus: LocalBus;
  private readonly functions = new Map<string, Registration>();
  private readonly triggers = new Map<string, Registration>();
  private readonly types = new Map<string, { registration: Registration; type: RemoteTriggerType }>();
  private readonly outgoing: OutgoingCalls;
  private readonly gone = new AbortController();
  private incoming = 0;

  constructor(
    private readonly engine: LocalEngine,
    private readonly wire: Wire,
    private readonly limits: GatewayLimits,
    /** Ends the connection that a worker had before; told its id and token. */
    private readonly reattach: (workerId: string, token: string) => void,
  ) {
    setMaxListeners(0, this.gone.signal); // each call under way listens
    this.bus = engine.connect({ name: 'worker', runtime: 'unknown', version: 'unknown', remote: true });
    this.outgoing = new OutgoingCalls(wire, limits.calls);
    wire.send({ type: 'workerregistered', worker_id: this.id, reattach_token: this.reattachToken });
  }

  get id(): string {
    return this.bus.worker.id;
  }

  /** Takes back what the worker registered and ends its calls; `lost` keeps its guards. */
  async end(how: 'left' | 'lost'): Promise<void> {
    if (this.gone.signal.aborted) return;
    this.gone.abort();
    const { name } = this.bus.worker;
    this.outgoing.end(`worker ${name} went away`);
    for (const { type } of this.types.values()) type.end(`worker ${name} went away`);
    await this.bus.disconnect(how);
  }

  receive(message: WorkerMessage): void {
    switch (message.type) {
      case 'invokefunction':
        void this.invoke(message);
        return;
      case 'invocationresult':
        this.outgoing.settle(message);
        return;
      case 'registerfunction':
        this.registerFunction(message);
        return;
      case 'unregisterfunction':
        this.unregister(this.functions, message.id);
        return;
      case 'registertrigger':
        this.registerTrigger(message);
        return;
      case 'unregistertrigger':
        this.unregister(this.triggers, message.id);
        return;
      case 'registertriggertype':
        this.registerTriggerType(message);
        return;
      case 'unregistertriggertype':
        this.types.get(message.id)?.registration.unregister();
        this.types.delete(message.id);
        return;
      case 'triggerregistrationresult':
        for (const { type } of this.types.values()) type.settle(message);
        return;
      case 'reattach':
        this.reattach(message.previous_worker_id, message.reattach_token ?? '');
        return;
      case 'ping':
        this.wire.send({ type: 'pong' });
        return;
      case 'pong':
      case 'registerservice':
        return;
      default:
        message satisfies never;
    }
  }

  private unregister(table: Map<string, Registration>, id: string): void {
    table.get(id)?.unregister();
    table.delete(id);
  }

  private mayRegister(what: string): boolean {
    if (this.functions.size + this.triggers.size + this.types.size < this.limits.registrations) return true;
    this.wire.fault('FORBIDDEN', `${what} is refused: a worker may register ${this.limits.registrations} things`);
    return false;
  }

  private refuseReserved(id: string): void {
    const { reserved } = this.limits;
    if (reserved.some((prefix) => id.startsWith(prefix)))
      throw new BusError('FORBIDDEN', `${id} is refused: ids that begin with ${reserved.join(' or ')} are reserved`, id);
  }

  private registerFunction({
    id,
    description,
    request_format,
    response_format,
    metadata,
    invocation,
    namespace,
  }: Of<'registerfunction'>): void {
    if (!this.mayRegister(`function ${id}`)) return;
    try {
      checkNamespace(namespace);
      this.refuseReserved(id);
      if (invocation !== undefined && invocation !== null) {
        throw new BusError('INVALID_ARGUMENTS', `${id} is refused: functions that are reached over HTTP are not supported here`, id);
      }
      this.unregister(this.functions, id); // a worker may say anew what a function of its own is
      const handler: FunctionHandler = (payload, context) =>
        this.outgoing.call(id, payload, context, baggageFor(context.trace, context.metadata));
      const definition = {
        id,
        ...(description == null ? {} : { description }),
        ...(request_format == null ? {} : { request_format }),
        ...(response_format == null ? {} : { response_format }),
        ...(metadata == null ? {} : { metadata }),
      };
      this.functions.set(id, this.bus.registerFunction(definition, handler));
    } catch (error) {
      const { code, message } = errorBody(error);
      this.engine.report('a function of a worker is refused', { function_id: id, worker: this.bus.worker.name, error: message });
      const owner_worker_id = this.engine.functions.get(id)?.worker.id ?? '';
      this.wire.send({ type: 'registrationrejected', code, namespace: NAMESPACE, function_id: id, owner_worker_id, message });
    }
  }

  private registerTrigger({ id, trigger_type, function_id, config, metadata, ...named }: Of<'registertrigger'>): void {
    if (!this.mayRegister(`trigger ${id}`)) return;
    const refused = (error: unknown): void => {
      const { message } = errorBody(error);
      const told = { code: 'trigger_registration_failed', message };
      this.wire.send({ type: 'triggerregistrationresult', id, trigger_type, function_id, error: told });
    };
    try {
      checkNamespace(named.namespace);
      checkNamespace(named.trigger_namespace);
      const trigger = { id, type: trigger_type, function_id, config: config ?? null, ...(metadata === undefined ? {} : { metadata }) };
      this.triggers.set(id, this.bus.registerTrigger(trigger, refused));
    } catch (error) {
      refused(error);
    }
  }

  private registerTriggerType(message: Of<'registertriggertype'>): void {
    const { id, description, trigger_request_format, call_request_format, namespace } = message;
    if (!this.mayRegister(`trigger type ${id}`)) return;
    try {
      checkNamespace(namespace);
      this.refuseReserved(id);
      this.types.get(id)?.registration.unregister();
      const type = new RemoteTriggerType(this.wire);
      const definition = {
        id,
        description: description ?? '',
        ...(trigger_request_format == null ? {} : { trigger_request_format }),
        ...(call_request_format == null ? {} : { call_request_format }),
      };
      this.types.set(id, { registration: this.bus.registerTriggerType(definition, type), type });
    } catch (error) {
      this.wire.fault(errorBody(error).code, errorBody(error).message);
    }
  }

  private async invoke(message: Of<'invokefunction'>): Promise<void> {
    const { invocation_id, function_id, traceparent, baggage } = message;
    const trace: TraceContext = { ...(traceparent == null ? {} : { traceparent }), ...(baggage == null ? {} : { baggage }) };
    const answer = (outcome: { result?: unknown; error?: ReturnType<typeof errorBody> }): void => {
      if (invocation_id != null) this.wire.send({ type: 'invocationresult', invocation_id, function_id, ...outcome, ...trace });
    };
    this.incoming += 1;
    try {
      if (this.incoming > this.limits.calls)
        throw new BusError('FORBIDDEN', `more than ${this.limits.calls} calls are under way`, function_id);
      checkNamespace(message.namespace);
      answer({ result: (await this.deliver(message, trace)) ?? null });
    } catch (error) {
      const told = errorBody(error);
      if (invocation_id == null) this.engine.report('a call of a worker failed', { function_id, error: told.message });
      answer({ error: told });
    } finally {
      this.incoming -= 1;
    }
  }

  private describe(data: unknown): object {
    const answer = describeWorker(this.bus.worker, data, (reason) => this.wire.close(1008, reason));
    this.engine.triggers.workerIsNamed(this.bus.worker);
    return answer;
  }

  private deliver({ function_id, data, action, metadata, baggage }: Of<'invokefunction'>, trace: TraceContext): Promise<unknown> | object {
    if (function_id === REGISTER_WORKER) return this.describe(data);
    if (function_id === CREATE_CHANNEL && this.engine.channels.countOf(this.id) >= this.limits.channels) {
      throw new BusError('FORBIDDEN', `more than ${this.limits.channels} channels are open`, function_id);
    }
    const meta: JsonValue | undefined = withProvenance(metadata, baggage ?? undefined);
    const request: TriggerRequest = {
      function_id,
      payload: data ?? null,
      timeoutMs: NO_TIMEOUT_MS,
      ...(action?.type === 'void' ? {} : { signal: this.gone.signal }),
      trace,
      ...(action == null ? {} : { action }),
      ...(meta === undefined ? {} : { metadata: meta }),
    };
    return this.bus.trigger(request);
  }
}

/** This engine has one namespace; a worker that names another would wait for ever for what is in it. */
function checkNamespace(namespace: string | null | undefined): void {
  if (namespace == null || namespace === NAMESPACE) return;
  throw new BusError('INVALID_NAMESPACE', `there is only the namespace "${NAMESPACE}" here, not ${JSON.stringify(namespace)}`);
}
