import { Injectable } from '@nestjs/common';
import type { Model, ProviderRegistration } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { ProviderAdapter } from '../shared/adapter.js';

/** The models of the demo provider: one, which costs nothing. */
export const demoModels: Model[] = [
  {
    id: 'demo',
    provider: 'demo',
    display_name: 'Demo (rules, not a language model)',
    context_window: 200_000,
    max_output_tokens: 32_000,
    pricing: { input: 0, output: 0 },
    supports_tools: true,
    supports_vision: false,
    supports_cache: false,
    supports_structured_output: true,
    supports_thinking: true,
  },
];

/** The offline provider `demo`: it answers by fixed rules, so that everything can be tried without a key. */
@Injectable()
export class DemoProvider implements ProviderAdapter {
  readonly id = 'demo';

  async register(bus: Bus): Promise<void> {
    const registration: ProviderRegistration = {
      id: this.id,
      display_name: 'Demo (offline, not a language model)',
      supports_model_listing: true,
      models: demoModels,
    };
    await bus.trigger({ function_id: 'router::provider::register', payload: registration });
  }
}
