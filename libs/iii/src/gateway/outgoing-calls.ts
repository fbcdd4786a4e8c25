import { randomUUID } from 'node:crypto';
import { BusError, type InvocationContext } from '../bus.js';
import type { EngineMessage, WorkerMessage } from './messages.js';
import { remoteError } from './remote-errors.js';

interface Pending {
  functionId: string;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The calls that a worker has been given and has not answered. */
export class OutgoingCalls {
  private readonly pending = new Map<string, Pending>();
  private ended: string | null = null;

  constructor(
    private readonly wire: { send(message: EngineMessage): boolean },
    private readonly limit: number,
  ) {}

  /** Gives the worker a call and waits for its answer. A void call is given and not waited for. */
  call(functionId: string, payload: unknown, context: InvocationContext, baggage: string | undefined): Promise<unknown> {
    const stopped = (why: string): BusError => new BusError('invocation_stopped', why, functionId);
    if (this.ended !== null) return Promise.reject(stopped(this.ended));
    if (this.pending.size >= this.limit) {
      return Promise.reject(new BusError('FORBIDDEN', `the worker of ${functionId} has ${this.limit} calls to answer first`, functionId));
    }
    const { metadata, trace } = context;
    const message = {
      type: 'invokefunction' as const,
      function_id: functionId,
      data: withCaller(payload, context.caller),
      ...(metadata === undefined ? {} : { metadata }),
      ...(trace?.traceparent === undefined ? {} : { traceparent: trace.traceparent }),
      ...(baggage === undefined ? {} : { baggage }),
    };
    return new Promise((resolve, reject) => {
      const isVoid = context.action?.type === 'void';
      const invocation_id = randomUUID();
      if (!this.wire.send(isVoid ? message : { ...message, invocation_id })) return reject(stopped(this.ended ?? 'the worker went away'));
      if (isVoid) return resolve(undefined);
      const { signal } = context;
      const forget = (): void => void this.pending.delete(invocation_id);
      signal.addEventListener('abort', forget, { once: true });
      const settled = (): void => {
        forget();
        signal.removeEventListener('abort', forget);
      };
      this.pending.set(invocation_id, {
        functionId,
        resolve: (value) => {
          settled();
          resolve(value);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
    });
  }

  /** Takes an answer; one that nobody waits for is dropped. */
  settle({ invocation_id, result, error }: Extract<WorkerMessage, { type: 'invocationresult' }>): void {
    const call = this.pending.get(invocation_id);
    if (call === undefined) return;
    if (error == null) call.resolve(result ?? null);
    else call.reject(remoteError(error, call.functionId));
  }

  /** The worker is gone: what it was given may have run, and gets no answer. */
  end(why: string): void {
    this.ended = why;
    for (const call of [...this.pending.values()]) call.reject(new BusError('invocation_stopped', why, call.functionId));
  }
}

/** Engines tell a target who calls it in the payload. */
function withCaller(payload: unknown, caller: string | undefined): unknown {
  const isObject = typeof payload === 'object' && payload !== null && !Array.isArray(payload);
  return isObject && caller !== undefined ? { ...payload, _caller_worker_id: caller } : payload;
}
