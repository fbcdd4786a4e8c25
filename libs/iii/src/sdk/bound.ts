import { errorMessage, type JsonValue } from '#libs/contracts';
import type { Bus, TriggerRegistration, TriggerTypeHandler } from '../bus.js';

/** What is bound to the trigger types of this worker, as its engine has told. */
export class BoundTriggers {
  private readonly types = new Map<string, { handler: TriggerTypeHandler; bound: Map<string, TriggerRegistration> }>();

  /** The handler of a trigger type, with what is bound to it noted. */
  noting(type: string, handler: TriggerTypeHandler): TriggerTypeHandler {
    const bound = new Map<string, TriggerRegistration>();
    this.types.set(type, { handler, bound });
    return {
      registerTrigger: async (trigger) => {
        await handler.registerTrigger(trigger);
        bound.set(trigger.id, trigger);
      },
      unregisterTrigger: async (trigger) => {
        bound.delete(trigger.id);
        await handler.unregisterTrigger(trigger);
      },
    };
  }

  /**
   * Takes back what the engine does not have any more: one that was started anew has only what has come back since, and tells of no binding that has
   * not. Throws as `Bus.trigger`.
   */
  async dropLost(bus: Pick<Bus, 'trigger'>, report: (message: string, context: { [key: string]: JsonValue }) => void): Promise<void> {
    for (const [type, { handler, bound }] of this.types) {
      if (bound.size === 0) continue;
      const { registered_triggers } = await bus.trigger<{ registered_triggers: { id: string }[] }>({
        function_id: 'engine::registered-triggers::list',
        payload: { trigger_type: type, include_internal: true },
      });
      const there = new Set(registered_triggers.map(({ id }) => id));
      for (const trigger of [...bound.values()]) {
        if (there.has(trigger.id)) continue;
        bound.delete(trigger.id);
        const { function_id } = trigger;
        try {
          await handler.unregisterTrigger(trigger);
          report('a binding has not come back with the engine', { type, function_id });
        } catch (error) {
          report('a binding could not be taken back', { type, function_id, error: errorMessage(error) });
        }
      }
    }
  }
}
