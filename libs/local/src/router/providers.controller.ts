import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import type { ProviderInfo, ProviderResolution } from '#libs/contracts';
import { IiiFunction } from '#libs/iii';
import { type ProviderDeclaration, ProviderRegistry } from './providers.js';
import { schemas } from './schemas.js';

const internal = { internal: true };

/** The providers: `router::provider::*` and `router::system_prompt::get`. */
@Controller()
export class RouterProvidersController {
  constructor(@Inject(ProviderRegistry) private readonly registry: ProviderRegistry) {}

  @IiiFunction({
    id: 'router::provider::list',
    description: 'Lists the providers, and whether each has its key and is running.',
    ...schemas.providerList,
  })
  async list(): Promise<{ providers: ProviderInfo[] }> {
    return { providers: await this.registry.list() };
  }

  @IiiFunction({
    id: 'router::provider::register',
    description: 'Makes a provider known to the router; a repeat replaces it.',
    ...schemas.providerRegister,
    metadata: internal,
  })
  register(@Payload() declaration: ProviderDeclaration): { ok: true; id: string; registration_token: string } {
    return { ok: true, id: declaration.id, registration_token: this.registry.register(declaration) };
  }

  /** The answer holds a secret: it is for the provider only. */
  @IiiFunction({
    id: 'router::provider::resolve',
    description: 'Gives a provider its credential and address.',
    ...schemas.providerResolve,
    metadata: internal,
  })
  resolve(@Payload() { id, token }: { id: string; token?: string | null }): ProviderResolution {
    return this.registry.resolve(id, token);
  }

  @IiiFunction({
    id: 'router::provider::update_credential',
    description: 'Takes a renewed credential of a provider; null forgets it.',
    ...schemas.providerUpdateCredential,
    metadata: internal,
  })
  async updateCredential(
    @Payload() { id, token, credential }: { id: string; token?: string | null; credential: string | null },
  ): Promise<{ ok: true }> {
    await this.registry.updateCredential(id, token, credential);
    return { ok: true };
  }

  @IiiFunction({
    id: 'router::system_prompt::get',
    description: 'The identity prompt of a provider, or null to use your own.',
    ...schemas.systemPrompt,
  })
  systemPrompt(@Payload() { provider }: { provider?: string | null }): { provider: string | null; system_prompt: string | null } {
    return this.registry.systemPrompt(provider);
  }
}
