import { Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { errorMessage, type JsonValue } from '#libs/contracts';
import { BUS, type Bus, TriggerBindings, type TriggerTypeDefinition } from '#libs/iii';
import type { StateChange } from './state-store.js';

/** Which changes a bound function wants to hear of. */
export interface StateTriggerConfig {
  scope?: string | null;
  key?: string | null;
  condition_function_id?: string | null;
}
export interface StateEvent {
  type: 'state';
  event_type: 'state:created' | 'state:updated' | 'state:deleted';
  scope: string;
  key: string;
  old_value: JsonValue;
  new_value: JsonValue;
}

const definition: TriggerTypeDefinition = {
  id: 'state',
  description: 'A stored value was created, updated or deleted.',
  trigger_request_format: {
    type: ['object', 'null'],
    properties: {
      scope: { type: ['string', 'null'], description: 'Only changes in this scope.' },
      key: { type: ['string', 'null'], description: 'Only changes of this key.' },
      condition_function_id: {
        type: ['string', 'null'],
        description: 'Called first with the event; the event is dropped when it answers false.',
      },
    },
  },
  call_request_format: {
    type: 'object',
    required: ['type', 'event_type', 'scope', 'key', 'old_value', 'new_value'],
    properties: {
      type: { enum: ['state'] },
      event_type: { enum: ['state:created', 'state:updated', 'state:deleted'] },
      scope: { type: 'string' },
      key: { type: 'string' },
      old_value: true,
      new_value: true,
    },
  },
};

/** Tells bound functions what changed, after it was stored: the trigger type `state`. A failing function changes nothing. */
@Injectable()
export class StateEvents implements OnModuleInit {
  private readonly log = new Logger('state');
  private readonly bindings = new TriggerBindings<StateTriggerConfig>(definition);

  constructor(@Inject(BUS) private readonly bus: Bus) {}

  onModuleInit(): void {
    this.bindings.publish(this.bus);
  }

  /** Returns at once; functions are called in the background. */
  changed(scope: string, key: string, { old, value }: StateChange): void {
    if (this.bindings.empty) return;
    const event_type = value === undefined ? 'state:deleted' : old === undefined ? 'state:created' : 'state:updated';
    const event: StateEvent = { type: 'state', event_type, scope, key, old_value: old ?? null, new_value: value ?? null };
    for (const { registration, config } of this.bindings.list()) {
      if ((config.scope ?? scope) !== scope || (config.key ?? key) !== key) continue;
      const { function_id, metadata } = registration;
      void this.pass(function_id, metadata, config.condition_function_id ?? null, event);
    }
  }

  private async pass(function_id: string, metadata: JsonValue | undefined, condition: string | null, event: StateEvent): Promise<void> {
    try {
      if (condition !== null && (await this.bus.trigger({ function_id: condition, payload: event })) === false) return;
      await this.bus.trigger({ function_id, payload: event, ...(metadata === undefined ? {} : { metadata }) });
    } catch (error) {
      this.log.warn(`${event.event_type} of ${event.scope}/${event.key} could not be told to ${function_id}: ${errorMessage(error)}`);
    }
  }
}
