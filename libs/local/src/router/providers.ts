import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { HarnessError, type ProviderInfo, type ProviderRegistration, type ProviderResolution } from '#libs/contracts';
import { BUS, type Bus } from '#libs/iii';
import { ModelCatalog } from './catalog.js';
import { ROUTER_CODES } from './errors.js';
import { RouterEvents } from './events.js';
import type { RoutingView } from './routing.js';
import {
  defaultRouterSettings,
  type Environment,
  ROUTER_ENV,
  ROUTER_SETTINGS,
  type RouterSettings,
  type RouterSettingsSource,
} from './settings.js';

/** A registration as `router::provider::register` takes it; `system_prompt` is the provider's own identity prompt. */
export type ProviderDeclaration = ProviderRegistration & { system_prompt?: string | null };

interface Registered {
  declaration: ProviderDeclaration;
  token: string;
  /** False after a call found no function of it, until one finds it again. */
  available: boolean;
  /** When it was last known to be there, ms since the epoch. */
  seenAt: number;
}

/** How long providers may take to come back, in ms. */
const EXPECT_MS = 10_000;
const PROVIDER_ID = /^[a-z0-9_-]{1,64}$/;

/** The registered providers, their credentials and the catalog of their models. */
@Injectable()
export class ProviderRegistry implements RoutingView {
  readonly catalog = new ModelCatalog();
  private readonly byId = new Map<string, Registered>();
  /** Credentials that were renewed while the settings cannot store them. */
  private readonly renewed = new Map<string, string>();
  /** Since when providers are expected back; null when they never were. */
  private expectedSince: number | null = null;

  constructor(
    @Inject(BUS) private readonly bus: Bus,
    @Inject(RouterEvents) private readonly events: RouterEvents,
    @Optional() @Inject(ROUTER_SETTINGS) private readonly source: RouterSettingsSource = { current: () => defaultRouterSettings },
    @Optional() @Inject(ROUTER_ENV) private readonly env: Environment = process.env,
  ) {}

  get settings(): RouterSettings {
    return this.source.current();
  }

  /**
   * To be called where programs of other processes connect, at a start and when the connection was lost: for a while, providers that were
   * there before have yet to come back.
   */
  expectProviders(): void {
    this.expectedSince = Date.now();
  }

  /** True while a provider (null: one that nobody has named) that is not there may be on its way back: one that was back already has gone away. */
  expects(id: string | null): boolean {
    const since = this.expectedSince;
    const seenAt = (id === null ? undefined : this.byId.get(id))?.seenAt ?? Number.NEGATIVE_INFINITY;
    return since !== null && seenAt < since && Date.now() < since + EXPECT_MS;
  }

  get providers(): readonly string[] {
    return [...this.byId.keys()].sort();
  }

  candidates(model: string): readonly string[] {
    return this.catalog.providersOf(model);
  }

  /** Adds a provider, or replaces it; its catalog stays when the registration has no models. Returns the token of the registration. */
  register(declaration: ProviderDeclaration): string {
    const { id } = declaration;
    if (!PROVIDER_ID.test(id)) throw new HarnessError(ROUTER_CODES.invalidRequest, 'id must be 1 to 64 characters of a-z, 0-9, _ and -');
    const before = this.byId.get(id);
    const token = before !== undefined && before.token === declaration.token ? before.token : randomUUID();
    const count = declaration.models == null ? null : this.catalog.replace(id, declaration.models);
    this.byId.set(id, { declaration, token, available: true, seenAt: Date.now() });
    this.events.providerChanged(id, 'register');
    if (count !== null) this.events.modelsChanged(id, count);
    return token;
  }

  /** Replaces the catalog of a provider; returns how many models it has now. */
  reconcile(id: string, token: string | null | undefined, models: ProviderRegistration['models']): number {
    this.authorised(id, token);
    const count = this.catalog.replace(id, models ?? []);
    this.events.modelsChanged(id, count);
    return count;
  }

  /** The declaration of a provider. Throws `router/unknown_provider`. */
  declaration(id: string): ProviderDeclaration {
    return this.registered(id).declaration;
  }

  /**
   * The credential and the address of a provider: from the configuration, else the environment, else its own defaults. A provider
   * that needs no key, or whose address is on this machine, is configured without one.
   */
  resolve(id: string, token?: string | null): ProviderResolution {
    const { declaration } = this.authorised(id, token);
    const configured = this.settings.providers[id] ?? {};
    const variable = declaration.credential_env_var;
    const fromConfig = this.renewed.get(id) ?? present(configured.api_key);
    const credential = fromConfig ?? (variable == null ? undefined : present(this.env[variable])) ?? null;
    const apiUrl = present(configured.api_url) ?? present(this.env[baseUrlVariable(id)]) ?? present(declaration.defaults?.api_url);
    const maxTokens = configured.max_tokens ?? declaration.defaults?.max_tokens ?? undefined;
    return {
      configured: credential !== null || variable == null || isOnThisMachine(apiUrl),
      source: fromConfig !== undefined ? 'config' : credential !== null ? 'env' : 'none',
      credential,
      ...(apiUrl === undefined ? {} : { api_url: apiUrl }),
      ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    };
  }

  isConfigured(id: string): boolean {
    return this.resolve(id).configured;
  }

  /** As `resolve`, but throws `router/not_configured`, which says what to set, when there is no key. */
  resolveOrThrow(id: string): ProviderResolution {
    const resolution = this.resolve(id);
    if (resolution.configured) return resolution;
    const variable = this.declaration(id).credential_env_var ?? 'its API key';
    throw new HarnessError(
      ROUTER_CODES.notConfigured,
      `provider ${id} has no API key: set the environment variable ${variable}, or providers.${id}.api_key in the configuration llm-router`,
    );
  }

  /** Takes a renewed credential, e.g. of a login that expires; null forgets it. */
  async updateCredential(id: string, token: string | null | undefined, credential: string | null): Promise<void> {
    this.authorised(id, token);
    if (this.source.saveCredential !== undefined) await this.source.saveCredential(id, credential);
    else if (credential === null) this.renewed.delete(id);
    else this.renewed.set(id, credential);
  }

  /** All providers, ordered by id; `available` says whether the function of a provider is on the bus. No secret is in it. */
  async list(): Promise<ProviderInfo[]> {
    const live = await this.liveFunctions();
    return this.providers.map((id) => {
      const { declaration } = this.registered(id);
      this.seen(id, live.has(streamFunction(id)));
      return {
        id,
        display_name: declaration.display_name ?? id,
        configured: this.isConfigured(id),
        available: live.has(streamFunction(id)),
        supports_model_listing: declaration.supports_model_listing ?? false,
        ...(declaration.credential_env_var == null ? {} : { credential_env_var: declaration.credential_env_var }),
      };
    });
  }

  /** Notes whether a provider's function was found on the bus, and tells when that has changed. */
  seen(id: string, available: boolean): void {
    const provider = this.byId.get(id);
    if (provider !== undefined && available) provider.seenAt = Date.now();
    if (provider === undefined || provider.available === available) return;
    provider.available = available;
    this.events.providerChanged(id, available ? 'available' : 'unavailable');
  }

  /** The identity prompt of a provider (the default one when none is named): the operator's, else the provider's own, else null. */
  systemPrompt(provider: string | null | undefined): { provider: string | null; system_prompt: string | null } {
    const id = provider ?? this.settings.default_provider;
    if (id === null || !this.byId.has(id)) return { provider: id, system_prompt: null };
    const text = present(this.settings.providers[id]?.system_prompt) ?? present(this.declaration(id).system_prompt);
    return { provider: id, system_prompt: text ?? null };
  }

  private async liveFunctions(): Promise<Set<string>> {
    const listed = await this.bus.trigger<{ functions: { function_id: string }[] }>({
      function_id: 'engine::functions::list',
      payload: { prefix: 'provider::', include_internal: true },
    });
    return new Set(listed.functions.map((row) => row.function_id));
  }

  private registered(id: string): Registered {
    const provider = this.byId.get(id);
    if (provider !== undefined) return provider;
    const known = this.providers.length === 0 ? 'none is registered' : this.providers.join(', ');
    throw new HarnessError(ROUTER_CODES.unknownProvider, `there is no provider ${id}; known providers: ${known}`);
  }

  private authorised(id: string, token: string | null | undefined): Registered {
    const provider = this.registered(id);
    if (token != null && token !== provider.token) {
      throw new HarnessError(
        ROUTER_CODES.invalidRequest,
        `token is not the one of the present registration of provider ${id}; register again`,
      );
    }
    return provider;
  }
}

/** The id of the function that streams a provider's answers. */
export const streamFunction = (provider: string): string => `provider::${provider}::stream`;

/** The environment variable that moves a provider to another address, e.g. `OPENAI_BASE_URL`. */
export const baseUrlVariable = (provider: string): string => `${provider.toUpperCase().replace(/[^A-Z0-9]/g, '_')}_BASE_URL`;

const present = (text: string | null | undefined): string | undefined => {
  const trimmed = text?.trim();
  return trimmed === undefined || trimmed === '' ? undefined : trimmed;
};

/** True for the address of a server on this machine, which is taken to need no key. */
function isOnThisMachine(url: string | undefined): boolean {
  if (url === undefined || !URL.canParse(url)) return false;
  const host = new URL(url).hostname;
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === '[::1]' ||
    host === 'host.docker.internal' ||
    /^127(?:\.\d+){3}$/.test(host) ||
    host === '0.0.0.0'
  );
}
