import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { Model } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import { outputBudget } from './budget.js';
import { type Capability, supports } from './catalog.js';
import { ProviderRegistry } from './providers.js';
import { route } from './routing.js';
import { schemas } from './schemas.js';

/** The model catalog: `router::models::*`. */
@Controller()
export class RouterModelsController {
  constructor(@Inject(ProviderRegistry) private readonly registry: ProviderRegistry) {}

  /** All rows are chat models, so `stt` and `tts` list nothing. */
  @IiiFunction({
    id: 'router::models::list',
    description: 'Lists the models of the catalog, of one provider or with one capability when asked.',
    ...schemas.modelsList,
  })
  list(@Payload() query: { provider?: string | null; capability?: Capability | null; modality?: string | null }): { models: Model[] } {
    return { models: query.modality === 'stt' || query.modality === 'tts' ? [] : this.registry.catalog.list(query) };
  }

  @IiiFunction({
    id: 'router::models::get',
    description: 'Reads one model of the catalog; null when it is not there.',
    ...schemas.modelsGet,
  })
  get(@Payload() { provider, id }: { provider?: string; id?: string }): { model: Model } | null {
    const model = this.registry.catalog.get(provider ?? '', id ?? '');
    return model === undefined ? null : { model };
  }

  /** Null for a model that the catalog does not know. Without a provider the model's id must be in one catalog only. */
  @IiiFunction({
    id: 'router::models::budget',
    description: 'Tells how many output tokens a chat with the model would get.',
    ...schemas.modelsBudget,
  })
  budget(
    @Payload() query: { id?: string; provider?: string | null; max_output_tokens?: number | null },
  ): { model: Model; effective_max_output_tokens: number } | null {
    const id = query.id ?? '';
    const named = query.provider ?? '';
    if (named === '' && this.registry.candidates(id).length === 0) return null;
    const provider = named === '' ? route(id, null, this.registry.settings, this.registry).provider : named;
    const model = this.registry.catalog.get(provider, id);
    if (model === undefined) return null;
    const configured = this.registry.providers.includes(provider) ? this.registry.resolve(provider).max_tokens : undefined;
    const effective = outputBudget(model, query.max_output_tokens, configured, this.registry.settings.settings.output_token_max);
    return { model, effective_max_output_tokens: effective ?? 0 };
  }

  /** A model that the catalog does not know counts as able: its provider decides. */
  @IiiFunction({ id: 'router::models::supports', description: 'Says whether a model has a capability.', ...schemas.modelsSupports })
  supports(@Payload() query: { provider: string; id: string; capability: Capability }): { supported: boolean } {
    const model = this.registry.catalog.get(query.provider, query.id);
    return { supported: model === undefined || supports(model, query.capability) };
  }

  @IiiFunction({
    id: 'router::models::reconcile',
    description: 'Replaces the catalog of one provider.',
    ...schemas.modelsReconcile,
    metadata: { internal: true },
  })
  reconcile(@Payload() { provider, token, models }: { provider: string; token?: string | null; models: Model[] }): {
    provider: string;
    count: number;
  } {
    return { provider, count: this.registry.reconcile(provider, token, models) };
  }
}
