import { Inject, Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { errorMessage, type JsonValue } from '#libs/contracts';
import { BUS, type Bus, type Registration, TriggerBindings } from '#libs/iii';
import { fire } from '../triggers/fire.js';
import { configurationTrigger } from './configuration.schemas.js';
import { LiveConfiguration } from './live.js';
import { hideSecrets } from './redact.js';
import type { EntryChange } from './registered.js';

interface BindingConfig {
  configuration_id?: string | null;
  event_types?: readonly string[] | null;
}

/** Tells bound functions of every change of the configuration: the trigger type `configuration`. */
@Injectable()
export class ConfigurationEvents implements OnModuleInit, OnModuleDestroy {
  private readonly logger = new Logger('configuration');
  private readonly bindings = new TriggerBindings<BindingConfig>(configurationTrigger);
  private type: Registration | undefined;
  private stopListening: (() => void) | undefined;

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(LiveConfiguration) private readonly configuration: LiveConfiguration,
  ) {}

  onModuleInit(): void {
    this.type = this.bindings.publish(this.bus);
    this.stopListening = this.configuration.onChange((changes) => {
      for (const change of changes) this.tell(change);
    });
  }

  onModuleDestroy(): void {
    this.stopListening?.();
    this.type?.unregister();
  }

  private tell(change: EntryChange): void {
    const { event_type, definition } = change;
    const wanted = this.bindings.list().filter(({ config: { configuration_id, event_types } }) => {
      return (configuration_id ?? definition.id) === definition.id && (event_types ?? [event_type]).includes(event_type);
    });
    if (wanted.length === 0) return;
    const event = eventOf(change);
    for (const { registration } of wanted) {
      fire(this.bus, registration, event).catch((error: unknown) => {
        this.logger.warn(`${registration.function_id} could not be told of a change of ${definition.id}: ${errorMessage(error)}`);
      });
    }
  }
}

const eventOf = ({ event_type, definition, old_value, new_value }: EntryChange): JsonValue => ({
  type: 'configuration',
  event_type,
  ...definition,
  old_value: hideSecrets(old_value),
  new_value: hideSecrets(new_value),
});
