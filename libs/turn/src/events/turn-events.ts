import { Inject, Injectable } from '@nestjs/common';
import { harnessTriggerTypes, type TurnEventBindingConfig } from '#libs/contracts';
import { BUS, type Bus, TriggerBindings } from '#libs/iii';
import type { PublishedTurnEvent } from '../ports/journal.js';

type TurnEventType = PublishedTurnEvent['type'];
const TYPES: readonly TurnEventType[] = ['harness::turn-started', 'harness::turn-completed'];

/** The trigger types `harness::turn-started` and `harness::turn-completed`, and the delivery to what is bound to them. */
@Injectable()
export class TurnEvents {
  private readonly bindings = new Map<string, TriggerBindings<TurnEventBindingConfig>>(
    TYPES.map((id) => {
      const { description, config } = harnessTriggerTypes[id];
      return [id, new TriggerBindings<TurnEventBindingConfig>({ id, description, trigger_request_format: config })];
    }),
  );

  constructor(@Inject(BUS) private readonly bus: Bus) {}

  /** Makes the trigger types known on the bus. */
  publish(): void {
    for (const bindings of this.bindings.values()) bindings.publish(this.bus);
  }

  /** True when a function is bound to events of this type. */
  wants(type: string): boolean {
    return this.bindings.get(type)?.empty === false;
  }

  /** Calls the functions that are bound to the event; rejects when one of them failed, after all were called. */
  async deliver(event: PublishedTurnEvent): Promise<void> {
    const { session_id, parent } = event.payload;
    await this.bindings.get(event.type)?.call(this.bus, event.payload, (config) => {
      if (config.session_id != null && config.session_id !== session_id) return false;
      return config.parent_session_id == null || config.parent_session_id === parent?.session_id;
    });
  }
}
