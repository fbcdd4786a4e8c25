import { HarnessError } from '#libs/contracts';
import type { TraceContext } from '../bus.js';

/** The part of the SDK's client that its types do not show. */
interface WireClient {
  sendMessage?: (type: string, message: object, skipIfClosed?: boolean) => void;
  onInvokeFunction?: (
    id: unknown,
    functionId: unknown,
    input: unknown,
    metadata: unknown,
    traceparent?: string,
    baggage?: string,
  ) => unknown;
}

/** The message by which a function is called. */
const INVOKE = 'invokefunction';

/**
 * The trace context of calls over an SDK client. The SDK takes it from OpenTelemetry's own tracing only, which harness does not use, so
 * this puts it on the wire, and reads it from there. Both ways the SDK does its part before it first waits.
 */
export class SdkTrace {
  private outgoing: TraceContext | undefined;
  private incoming: TraceContext | undefined;

  /** Throws `harness/internal` when a version of the SDK sends and takes calls in another way. */
  constructor(client: object) {
    const wire = client as WireClient;
    const send = wire.sendMessage?.bind(client);
    const invoke = wire.onInvokeFunction?.bind(client);
    if (send === undefined || invoke === undefined)
      throw new HarnessError('harness/internal', 'this version of iii-sdk does not show the calls that it sends and takes');
    wire.sendMessage = (type, message, skipIfClosed) => {
      send(type, type === INVOKE && this.outgoing !== undefined ? { ...message, ...this.outgoing } : message, skipIfClosed);
    };
    wire.onInvokeFunction = (id, functionId, input, metadata, traceparent, baggage) => {
      this.incoming = contextOf(traceparent, baggage);
      try {
        return invoke(id, functionId, input, metadata, traceparent, baggage);
      } finally {
        this.incoming = undefined;
      }
    };
  }

  /** What came with the call that is being taken; to be asked before anything is waited for. */
  get current(): TraceContext | undefined {
    return this.incoming;
  }

  /** Sends a call with a trace context. */
  along<T>(trace: TraceContext | undefined, send: () => T): T {
    this.outgoing = trace;
    try {
      return send();
    } finally {
      this.outgoing = undefined;
    }
  }
}

const contextOf = (traceparent: string | undefined, baggage: string | undefined): TraceContext | undefined =>
  traceparent === undefined && baggage === undefined
    ? undefined
    : { ...(traceparent === undefined ? {} : { traceparent }), ...(baggage === undefined ? {} : { baggage }) };
