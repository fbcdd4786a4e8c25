import type { Model, ProviderInfo } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import { CliError, EXIT, usageError } from '../cli/exit.js';
import { closeTo, either } from '../input/close.js';

/** The model that a turn runs on. */
export interface ModelChoice {
  model: string;
  provider: string;
  /** Why that one, for a person; null when it was asked for. */
  why: string | null;
}

/** The provider that needs no key and no network. */
const DEMO = 'demo';

/** What the router knows. */
export interface Catalog {
  providers: ProviderInfo[];
  models: Model[];
}

/** Reads the providers and models from the router. */
export async function readCatalog({ bus }: EmbeddedRuntime): Promise<Catalog> {
  const [{ providers }, { models }] = await Promise.all([
    bus.trigger<{ providers: ProviderInfo[] }>({ function_id: 'router::provider::list', payload: {} }),
    bus.trigger<{ models: Model[] }>({ function_id: 'router::models::list', payload: {} }),
  ]);
  return { providers, models };
}

interface Wanted {
  model?: string | null;
  provider?: string | null;
}

/**
 * Takes what the options name, else what the configuration names, else the first provider that has a key, else the demo
 * provider. Throws when a name is not known, or the provider has no key.
 */
export function chooseModel(catalog: Catalog, options: Wanted, defaults: Wanted): ModelChoice {
  if (options.model != null || options.provider != null) return resolve(catalog, options, defaults, null);
  if (defaults.model != null || defaults.provider != null) return resolve(catalog, defaults, defaults, 'the default in the configuration');
  const keyed = catalog.providers.find((provider) => hasKey(provider) && firstModel(catalog, provider.id) !== undefined);
  if (keyed !== undefined) {
    const model = firstModel(catalog, keyed.id) as Model;
    return { model: model.id, provider: keyed.id, why: `${keyed.credential_env_var} is set` };
  }
  const demo = firstModel(catalog, DEMO);
  if (demo === undefined)
    throw new CliError(EXIT.unreachable, 'cli/no_provider', 'no provider has a key, and there is no demo provider', keysHint(catalog));
  return { model: demo.id, provider: DEMO, why: `no API key is set, so the offline demo provider answers; it is not a model` };
}

/** A provider that takes no key, such as a program that has connected, answers only who names it. */
const hasKey = (provider: ProviderInfo): provider is ProviderInfo & { credential_env_var: string } =>
  provider.credential_env_var != null && provider.configured && provider.available;
const firstModel = ({ models }: Catalog, provider: string): Model | undefined => models.find((model) => model.provider === provider);

function keysHint({ providers }: Catalog): string {
  const names = providers.flatMap((provider) => provider.credential_env_var ?? []);
  return names.length === 0 ? 'See `harness-cli models`.' : `Set ${either(names)}.`;
}

function resolve(catalog: Catalog, wanted: Wanted, defaults: Wanted, why: string | null): ModelChoice {
  if (wanted.provider != null) {
    const provider = usable(catalog, wanted.provider);
    const model = wanted.model ?? (defaults.provider === provider.id ? defaults.model : null) ?? firstModel(catalog, provider.id)?.id;
    if (model == null)
      throw usageError(`provider ${provider.id} lists no models, so there is no default`, 'Name one with --model.', 'cli/no_model');
    const listed = catalog.models.filter((known) => known.provider === provider.id).map((known) => known.id);
    if (provider.id === DEMO && !listed.includes(model))
      throw usageError(`the demo provider has no model ${model}`, `It has ${either(listed)}.`, 'cli/unknown_model');
    return { model, provider: provider.id, why };
  }
  const id = wanted.model as string;
  const offering = catalog.models.filter((model) => model.id === id).map((model) => model.provider);
  if (offering.length === 0) throw unknownModel(catalog, id);
  const able = offering.filter((name) =>
    catalog.providers.some((provider) => provider.id === name && provider.configured && provider.available),
  );
  const preferred = able.find((name) => name === defaults.provider) ?? (able.length === 1 ? able[0] : undefined);
  if (preferred !== undefined) return { model: id, provider: preferred, why };
  if (able.length > 1)
    throw usageError(`${either(able)} offer the model ${id}`, 'Name the provider with --provider.', 'cli/ambiguous_model');
  return { model: id, provider: usable(catalog, offering[0] as string).id, why };
}

function unknownModel({ models }: Catalog, id: string): CliError {
  const close = closeTo(
    id,
    models.map((model) => model.id),
  );
  return usageError(
    `no provider offers the model ${id}${close.length > 0 ? `; did you mean ${either(close)}?` : ''}`,
    'See `harness-cli models`. A model that is not listed there can be used with --provider.',
    'cli/unknown_model',
  );
}

function usable({ providers }: Catalog, id: string): ProviderInfo {
  const provider = providers.find((known) => known.id === id);
  if (provider === undefined) {
    const close = closeTo(
      id,
      providers.map((known) => known.id),
    );
    throw usageError(
      `there is no provider ${id}${close.length > 0 ? `; did you mean ${either(close)}?` : ''}`,
      `There is ${providers.map((known) => known.id).join(', ') || 'none'}.`,
      'cli/unknown_provider',
    );
  }
  if (!provider.configured) {
    const variable = provider.credential_env_var;
    throw new CliError(
      EXIT.unreachable,
      'cli/missing_key',
      `provider ${id} has no key`,
      variable === undefined
        ? 'Set it up in the configuration.'
        : `Set the environment variable ${variable}, or use --provider demo to try things without a key.`,
    );
  }
  if (!provider.available)
    throw new CliError(
      EXIT.unreachable,
      'cli/provider_unavailable',
      `provider ${id} is not available now`,
      'See `harness-cli models`, or choose another with --provider.',
    );
  return provider;
}
