import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { JsonValue, Schema } from '#libs/contracts';
import { BUS, type Bus, TriggerBindings, type TriggerTypeDefinition } from '#libs/iii';

const noConfig: Schema = { type: ['object', 'null'], additionalProperties: false };

const types = {
  'router::models::changed': {
    id: 'router::models::changed',
    description: 'The catalog of a provider has changed.',
    trigger_request_format: noConfig,
    call_request_format: {
      type: 'object',
      properties: { provider: { type: 'string' }, count: { type: 'integer', minimum: 0 } },
      required: ['provider', 'count'],
    },
  },
  'router::provider::changed': {
    id: 'router::provider::changed',
    description: 'A provider was registered, or its worker came or went.',
    trigger_request_format: noConfig,
    call_request_format: {
      type: 'object',
      properties: { provider: { type: 'string' }, op: { enum: ['register', 'available', 'unavailable'] } },
      required: ['provider', 'op'],
    },
  },
  'router::ready': {
    id: 'router::ready',
    description: 'The router takes registrations of providers. A function that is bound later is told at once.',
    trigger_request_format: noConfig,
    call_request_format: { type: 'object' },
  },
} as const satisfies { [id: string]: TriggerTypeDefinition };

/** What happened to a provider. */
export type ProviderChange = 'register' | 'available' | 'unavailable';

/** Tells bound functions what changes in the router: its three trigger types. */
@Injectable()
export class RouterEvents implements OnModuleInit {
  private readonly models = new TriggerBindings<unknown>(types['router::models::changed']);
  private readonly providers = new TriggerBindings<unknown>(types['router::provider::changed']);
  private readonly readiness = new TriggerBindings<unknown>(types['router::ready'], () => this.tellReady());
  private readonly told = new Set<string>();
  private isReady = false;

  constructor(@Inject(BUS) private readonly bus: Bus) {}

  onModuleInit(): void {
    for (const bindings of [this.models, this.providers, this.readiness]) bindings.publish(this.bus);
  }

  modelsChanged(provider: string, count: number): void {
    this.fire(this.models, { provider, count });
  }

  providerChanged(provider: string, op: ProviderChange): void {
    this.fire(this.providers, { provider, op });
  }

  /** To be called once the router's functions are on the bus: fires `router::ready`. */
  announceReady(): void {
    this.isReady = true;
    this.tellReady();
  }

  private tellReady(): void {
    if (!this.isReady) return;
    const bindings = this.readiness.list();
    const present = new Set(bindings.map(({ registration }) => registration.id));
    for (const id of this.told) if (!present.has(id)) this.told.delete(id);
    for (const { registration } of bindings) {
      if (this.told.has(registration.id)) continue;
      this.told.add(registration.id);
      this.call(registration.function_id, {}, registration.metadata);
    }
  }

  private fire(bindings: TriggerBindings<unknown>, payload: JsonValue): void {
    if (bindings.empty) return;
    for (const { registration } of bindings.list()) this.call(registration.function_id, payload, registration.metadata);
  }

  private call(function_id: string, payload: JsonValue, metadata: JsonValue | undefined): void {
    this.bus.trigger({ function_id, payload, metadata, action: { type: 'void' } }).catch((error: unknown) => {
      process.emitWarning(`${function_id} could not be told of a change in the router: ${String(error)}`);
    });
  }
}
