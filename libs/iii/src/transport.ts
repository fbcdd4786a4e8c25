import { Catch, type ExceptionFilter } from '@nestjs/common';
import { type CustomTransportStrategy, type MessageHandler, Server } from '@nestjs/microservices';
import { isObservable, lastValueFrom, type Observable, throwError } from 'rxjs';
import { HarnessError, type Schema } from '#libs/contracts';
import type { Bus, FunctionHandler, InvocationContext, Registration } from './bus.js';
import { III_EXTRAS, type IiiFunctionOptions } from './decorators.js';
import { withoutEngineKeys } from './engine-keys.js';
import { violation } from './validation.js';

/** Hands a handler's error to the bus as it is; Nest's own filter would make "Internal server error" of it. */
@Catch()
export class BusErrorFilter implements ExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception);
  }
}

/**
 * The Nest transport strategy of iii: registers every `@IiiFunction` of the application as a function on a bus.
 * Closing it takes the functions back and waits for calls in flight, for at most `drainMs`.
 */
export class IiiTransport extends Server implements CustomTransportStrategy {
  override readonly transportId = Symbol('iii');
  private readonly registrations: Registration[] = [];
  private readonly inFlight = new Set<Promise<unknown>>();

  constructor(
    private readonly bus: Bus,
    private readonly drainMs = 10_000,
  ) {
    super();
  }

  override listen(callback: (error?: unknown) => void): void {
    try {
      for (const [pattern, handler] of this.messageHandlers) this.register(pattern, handler);
      callback();
    } catch (error) {
      callback(error);
    }
  }

  override async close(): Promise<void> {
    for (const registration of this.registrations.splice(0)) registration.unregister();
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.drainMs);
    });
    await Promise.race([Promise.allSettled([...this.inFlight]), limit]);
    clearTimeout(timer);
  }

  override on(): never {
    throw new Error('the iii transport has no connection events');
  }

  override unwrap<T>(): T {
    return this.bus as T;
  }

  private register(pattern: string, handler: MessageHandler): void {
    const options = handler.extras?.[III_EXTRAS] as IiiFunctionOptions | undefined;
    if (options === undefined) throw new Error(`the handler of ${pattern} is not an @IiiFunction`);
    const { id, description, request, response, metadata } = options;
    const invalid = options.invalid ?? ((detail: string) => new HarnessError(`${id.split('::')[0] ?? 'harness'}/invalid_request`, detail));
    const run: FunctionHandler = (payload, context) =>
      this.track(this.call(handler, options.checked ?? request, invalid, payload, context));
    this.registrations.push(
      this.bus.registerFunction({ id, description, request_format: request, response_format: response, metadata }, run),
    );
  }

  private async call(
    handler: MessageHandler,
    request: Schema,
    invalid: (detail: string) => Error,
    payload: unknown,
    context: InvocationContext,
  ): Promise<unknown> {
    const body = withoutEngineKeys(payload);
    const wrong = violation(request, body);
    if (wrong !== null) throw invalid(wrong);
    const result: unknown = await handler(body, context);
    return isObservable(result) ? await lastValueFrom(result, { defaultValue: null }) : result;
  }

  private track<T>(call: Promise<T>): Promise<T> {
    this.inFlight.add(call);
    const done = (): void => {
      this.inFlight.delete(call);
    };
    call.then(done, done);
    return call;
  }
}
