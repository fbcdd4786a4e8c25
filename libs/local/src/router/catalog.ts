import { HarnessError, type Model, type ThinkingLevel, type Usage } from '#libs/contracts';
import { ROUTER_CODES } from './errors.js';

/** A capability that a model can be asked for. */
export type Capability = 'tools' | 'vision' | 'cache' | 'structured_output' | 'thinking' | `thinking:${ThinkingLevel}`;

/** The capabilities by name. */
export const CAPABILITIES: readonly Capability[] = [
  'tools',
  'vision',
  'cache',
  'structured_output',
  'thinking',
  'thinking:minimal',
  'thinking:low',
  'thinking:medium',
  'thinking:high',
  'thinking:xhigh',
];

/** The models of all providers. Each provider replaces its own rows as a whole. */
export class ModelCatalog {
  private readonly byProvider = new Map<string, Map<string, Model>>();

  /** Puts `models` in the place of the provider's rows; returns how many there are. A repeated id counts once, the last one wins. */
  replace(provider: string, models: readonly Model[]): number {
    const rows = new Map<string, Model>();
    for (const model of models) {
      if (model.id === '') throw new HarnessError(ROUTER_CODES.invalidRequest, 'models: an id is empty');
      rows.set(model.id, { ...model, provider });
    }
    this.byProvider.set(provider, rows);
    return rows.size;
  }

  get(provider: string, id: string): Model | undefined {
    return this.byProvider.get(provider)?.get(id);
  }

  /** The providers whose catalog has the model, ordered by id. */
  providersOf(id: string): string[] {
    const found: string[] = [];
    for (const [provider, rows] of this.byProvider) if (rows.has(id)) found.push(provider);
    return found.sort();
  }

  /** All models, ordered by provider and then as the provider gave them. */
  list(filter: { provider?: string | null; capability?: Capability | null } = {}): Model[] {
    const providers = [...this.byProvider.keys()].sort().filter((id) => filter.provider == null || filter.provider === id);
    const models = providers.flatMap((id) => [...(this.byProvider.get(id)?.values() ?? [])]);
    const { capability } = filter;
    return capability == null ? models : models.filter((model) => supports(model, capability));
  }
}

/** True when the catalog's row says that the model has the capability. */
export function supports(model: Model, capability: Capability): boolean {
  switch (capability) {
    case 'tools':
      return model.supports_tools === true;
    case 'vision':
      return model.supports_vision === true;
    case 'cache':
      return model.supports_cache === true;
    case 'structured_output':
      return model.supports_structured_output === true;
    case 'thinking':
      return model.supports_thinking === true;
    case 'thinking:xhigh':
      return model.supports_xhigh === true || (names(model, 'xhigh') ?? false);
    case 'thinking:minimal':
    case 'thinking:low':
    case 'thinking:medium':
    case 'thinking:high':
      return names(model, capability.slice('thinking:'.length)) ?? model.supports_thinking === true;
    default: {
      const never: never = capability;
      throw new Error(`no such capability: ${String(never)}`);
    }
  }
}

/** Whether the row names the thinking level; undefined when it names none at all. */
function names(model: Model, level: string): boolean | undefined {
  if (model.reasoning_efforts == null && model.thinking_budgets == null) return undefined;
  return (model.reasoning_efforts?.some((e) => e.effort === level) ?? false) || model.thinking_budgets?.[level] !== undefined;
}

const PER_MILLION = 1_000_000;

/**
 * What a generation cost by the catalog's prices, in US dollars; null when there is no price. `usage.input` counts the
 * tokens that were neither read from a cache nor written to it; without a price of their own those cost as input does.
 */
export function costOf(model: Model | undefined, usage: Usage): number | null {
  const pricing = model?.pricing;
  if (pricing?.input == null || pricing.output == null) return null;
  const sum =
    (usage.input ?? 0) * pricing.input +
    (usage.output ?? 0) * pricing.output +
    (usage.cache_read ?? 0) * (pricing.cache_read ?? pricing.input) +
    (usage.cache_write ?? 0) * (pricing.cache_write ?? pricing.input);
  return Number((sum / PER_MILLION).toFixed(10));
}
