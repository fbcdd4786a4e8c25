import type { LoggerService } from '@nestjs/common';
import { answerParent, isTurnEvent, type LoopPorts, type TurnEvents } from '#libs/turn';
import { isSessionEvent, type SessionEvents } from '../sessions/index.js';
import type { OpenRuntimeOptions } from './api.js';
import type { Store } from './store.js';

type Log = NonNullable<OpenRuntimeOptions['log']>;

/**
 * Passes events on: those of turns and sessions to bound functions, the end of a child to its parent. Where another worker keeps
 * the sessions, their events are its own.
 */
export function listen(store: Store, ports: LoopPorts, turnEvents: TurnEvents, sessionEvents?: SessionEvents): void {
  store.delivery.addListeners({
    wants: (type) => type === 'harness::child-ended' || turnEvents.wants(type) || sessionEvents?.wants(type) === true,
    deliver: async (event) => {
      if (event.type === 'harness::child-ended') await answerParent(ports, event.payload);
      else if (isTurnEvent(event)) await turnEvents.deliver(event);
      else if (isSessionEvent(event)) await sessionEvents?.deliver(event);
    },
  });
}

/** Nest's own messages, in our log; what it says at start is for developers only. */
export function nestLogger(log: Log): LoggerService {
  const at =
    (level: Parameters<Log>[0]) =>
    (message: unknown, ...rest: unknown[]) =>
      log(level, String(message), rest.length > 0 ? { context: rest.map(String) } : {});
  return { log: at('debug'), error: at('error'), warn: at('warn'), debug: at('debug'), verbose: at('debug'), fatal: at('error') };
}
