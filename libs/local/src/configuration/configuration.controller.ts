import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { JsonValue } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import { configurationFunctions as functions } from './configuration.schemas.js';
import { ConfigurationStore, type EntryRegistration } from './configuration.store.js';
import type { EntryDefinition } from './definitions.js';

const internal = { internal: true } as const;

/** The `configuration::*` functions on the bus. */
@Controller()
export class ConfigurationController {
  constructor(@Inject(ConfigurationStore) private readonly store: ConfigurationStore) {}

  @IiiFunction({ id: 'configuration::register', ...functions.register, metadata: internal })
  register(@Payload() entry: EntryRegistration): Promise<EntryDefinition & { value: JsonValue }> {
    const { id, name, description, schema, metadata, initial_value } = entry;
    return this.store.register({
      id,
      name,
      description,
      schema,
      ...(metadata === undefined ? {} : { metadata }),
      ...(initial_value === undefined ? {} : { initial_value }),
    });
  }

  @IiiFunction({ id: 'configuration::get', ...functions.get })
  get(@Payload() { id, raw }: { id: string; raw?: boolean | null }): { id: string; value: JsonValue } {
    return { id, value: this.store.get(id, raw ?? false) };
  }

  @IiiFunction({ id: 'configuration::set', ...functions.set, metadata: internal })
  set(@Payload() { id, value }: { id: string; value: JsonValue }): Promise<{ old_value: JsonValue; new_value: JsonValue }> {
    return this.store.set(id, value);
  }

  @IiiFunction({ id: 'configuration::list', ...functions.list })
  list(): { configurations: EntryDefinition[] } {
    return { configurations: this.store.list() };
  }

  @IiiFunction({ id: 'configuration::schema', ...functions.schema })
  schema(@Payload() { id }: { id: string }): EntryDefinition {
    return this.store.definition(id);
  }
}
