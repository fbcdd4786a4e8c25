import type { Bus, TriggerRequest } from '#libs/iii';

/** A bus whose calls carry the trace context that is in force when they are made. */
export class TracedBus implements Bus {
  constructor(
    private readonly bus: Bus,
    private readonly traceparent: () => string,
  ) {}

  trigger<T = unknown>(request: TriggerRequest): Promise<T> {
    return this.bus.trigger<T>(request.trace === undefined ? { ...request, trace: { traceparent: this.traceparent() } } : request);
  }

  registerFunction(...given: Parameters<Bus['registerFunction']>): ReturnType<Bus['registerFunction']> {
    return this.bus.registerFunction(...given);
  }

  registerTrigger(...given: Parameters<Bus['registerTrigger']>): ReturnType<Bus['registerTrigger']> {
    return this.bus.registerTrigger(...given);
  }

  registerTriggerType(...given: Parameters<Bus['registerTriggerType']>): ReturnType<Bus['registerTriggerType']> {
    return this.bus.registerTriggerType(...given);
  }

  createChannel(...given: Parameters<Bus['createChannel']>): ReturnType<Bus['createChannel']> {
    return this.bus.createChannel(...given);
  }

  openWriter(...given: Parameters<Bus['openWriter']>): ReturnType<Bus['openWriter']> {
    return this.bus.openWriter(...given);
  }

  openReader(...given: Parameters<Bus['openReader']>): ReturnType<Bus['openReader']> {
    return this.bus.openReader(...given);
  }
}
