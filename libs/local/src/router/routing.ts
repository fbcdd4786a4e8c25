import { HarnessError } from '#libs/contracts';
import { ROUTER_CODES } from './errors.js';
import { matchesGlob } from './globs.js';
import type { RouterSettings } from './settings.js';

/** What routing needs to know of the providers and their models. */
export interface RoutingView {
  /** Ids of the registered providers, ordered. */
  readonly providers: readonly string[];
  /** The providers whose catalog has the model, ordered. */
  candidates(model: string): readonly string[];
  isConfigured(provider: string): boolean;
}

/** Where a model goes; `candidates` are the providers whose catalog has it. */
export interface Route {
  provider: string;
  candidates: readonly string[];
}

const named = (ids: readonly string[]): string => (ids.length === 0 ? 'none is registered' : ids.join(', '));

/**
 * Finds the provider of a model: the one that the request names; else the one whose catalog has it; else the first heuristic
 * that leads to a registered provider; else the default provider. A named provider takes any model, also an unknown one.
 * Throws `router/unknown_provider`, `router/ambiguous_model` or `router/no_provider_for_model`.
 */
export function route(model: string, provider: string | null | undefined, settings: RouterSettings, view: RoutingView): Route {
  const candidates = view.candidates(model);
  if (provider != null && provider !== '') {
    if (!view.providers.includes(provider)) {
      throw new HarnessError(ROUTER_CODES.unknownProvider, `there is no provider ${provider}; known providers: ${named(view.providers)}`);
    }
    return { provider, candidates };
  }
  const fromCatalog = pick(model, candidates, settings, view);
  if (fromCatalog !== undefined) return { provider: fromCatalog, candidates };
  for (const heuristic of settings.routing_heuristics) {
    if (matchesGlob(heuristic.pattern, model) && view.providers.includes(heuristic.provider))
      return { provider: heuristic.provider, candidates };
  }
  const fallback = settings.default_provider;
  if (fallback !== null && view.providers.includes(fallback)) return { provider: fallback, candidates };
  const why = fallback === null ? 'there is no default provider' : `the default provider ${fallback} is not registered`;
  throw new HarnessError(
    ROUTER_CODES.noProviderForModel,
    `no provider for model ${model}: no catalog has it, no routing heuristic matches it and ${why}; name a provider (known: ${named(view.providers)})`,
  );
}

/** Of several providers that have a model: the only configured one, else the default provider. */
function pick(model: string, candidates: readonly string[], settings: RouterSettings, view: RoutingView): string | undefined {
  if (candidates.length <= 1) return candidates[0];
  const configured = candidates.filter((id) => view.isConfigured(id));
  if (configured.length === 1) return configured[0];
  if (settings.default_provider !== null && candidates.includes(settings.default_provider)) return settings.default_provider;
  throw new HarnessError(
    ROUTER_CODES.ambiguousModel,
    `several providers have model ${model}: ${candidates.join(', ')}; name one of them as provider`,
  );
}
