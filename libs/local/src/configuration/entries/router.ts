import { inspect } from 'node:util';
import { plainToInstance, Transform } from 'class-transformer';
import { ValidateNested } from 'class-validator';
import { defaultRouterSettings, type ProviderSettings, type RouterLimits, type RouterSettings } from '../../router/settings.js';
import { checkOf, field, isMapping, milliseconds, nullable, optional, section, sections, text, whole } from '../rules.js';
import { schemaOf } from '../schema.js';

const limits = defaultRouterSettings.settings;
const tokens = whole(1, 100_000_000);

const baseUrl = checkOf({ type: 'string', format: 'uri' }, (value) => {
  const expected = 'must be an http or https URL without a user and password';
  if (typeof value !== 'string' || !URL.canParse(value)) return expected;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === '' && password === '' ? null : expected;
});

class ProviderFields implements ProviderSettings {
  @optional
  @field(
    nullable(text('the API key as text')),
    'The API key; better a reference to the environment. Empty = the environment variable of the provider.',
  )
  api_key?: string | null;

  @optional
  @field(nullable(baseUrl), 'Base address of its API; empty = the usual one.')
  api_url?: string | null;

  @optional
  @field(nullable(tokens), 'Output tokens of a request that names no limit.')
  max_tokens?: number | null;

  @optional
  @field(nullable(text('text')), 'Replaces the identity prompt of the provider.')
  system_prompt?: string | null;
}

class HeuristicFields {
  @field(text('a pattern of model ids, where * stands for any text'), 'Pattern of model ids, where `*` stands for any text.')
  pattern!: string;

  @field(text('the id of a provider'), 'Provider that takes them.')
  provider!: string;
}

class LimitFields implements RouterLimits {
  @field(milliseconds(), 'How long a chat may take in all, with its retries, in ms.')
  stream_timeout_ms = limits.stream_timeout_ms;

  @field(milliseconds(), 'How long a provider may send nothing, in ms.')
  idle_timeout_ms = limits.idle_timeout_ms;

  @field(nullable(milliseconds()), 'The same before its first output, in ms; null = `idle_timeout_ms`.')
  first_byte_timeout_ms = limits.first_byte_timeout_ms;

  @field(whole(0, 100), 'Further tries of a request that fails for a passing reason before its first output.')
  retry_max = limits.retry_max;

  @field(milliseconds(0), 'Longest pause before the first of them, in ms; it doubles with each.')
  retry_base_ms = limits.retry_base_ms;

  @field(milliseconds(0), 'Longest pause before any of them, in ms.')
  retry_cap_ms = limits.retry_cap_ms;

  @field(milliseconds(0), 'A provider that asks to wait longer than this is not waited for, in ms.')
  retry_after_cap_ms = limits.retry_after_cap_ms;

  @field(tokens, 'Output tokens of a request when neither it nor the provider says.')
  output_token_max = limits.output_token_max;
}

const PROVIDER_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const providerFields = { anyOf: [schemaOf(ProviderFields), { type: 'null' }] };
const providerSchema = { type: ['object', 'null'], propertyNames: { pattern: PROVIDER_ID.source }, additionalProperties: providerFields };
const providerMap = checkOf(providerSchema, (value) => {
  if (!(value instanceof Map)) return 'must be a mapping of provider ids to their fields';
  for (const [id, provider] of value as Map<string, unknown>) {
    if (!PROVIDER_ID.test(id)) return 'must have ids of letters, digits, ".", "_" and "-" as keys';
    if (!(provider instanceof ProviderFields)) return `must have a mapping of fields for each provider; ${id} has something else`;
  }
  return null;
});

/** Each provider's mapping as `ProviderFields`; what is not a mapping is left for the check to find. */
const toProviders = (value: unknown): unknown => {
  if (value === null || value === undefined) return new Map();
  if (!isMapping(value)) return value;
  return new Map(
    Object.entries(value).map(([id, fields]) => [
      id,
      fields === null || isMapping(fields) ? plainToInstance(ProviderFields, fields ?? {}) : fields,
    ]),
  );
};

/** The fields of `llm-router.yaml`. */
export class RouterFields {
  @field(nullable(text('the id of a provider')), 'Provider of the models that nobody else claims; null = none.')
  default_provider = defaultRouterSettings.default_provider;

  @Transform(({ obj }) => toProviders((obj as { providers?: unknown }).providers))
  @ValidateNested()
  @field(providerMap, 'What is special to a provider, by its id.')
  providers: Map<string, ProviderFields> = new Map();

  @sections(HeuristicFields, 'a pattern and a provider each', 'Which provider takes a model that no catalog has; the first match wins.')
  routing_heuristics: HeuristicFields[] = defaultRouterSettings.routing_heuristics.map((heuristic) =>
    Object.assign(new HeuristicFields(), heuristic),
  );

  @section(LimitFields, 'Times and limits of all chats.')
  settings: LimitFields = new LimitFields();
}

/** The settings of one provider. Whatever prints or serialises them sees that there is a key, never the key. */
class Provider implements ProviderSettings {
  readonly api_key: string | null;
  readonly api_url: string | null;
  readonly max_tokens: number | null;
  readonly system_prompt: string | null;

  constructor(fields: ProviderFields) {
    this.api_key = fields.api_key?.trim() ?? null;
    this.api_url = fields.api_url ?? null;
    this.max_tokens = fields.max_tokens ?? null;
    this.system_prompt = fields.system_prompt ?? null;
  }

  toJSON(): ProviderSettings {
    return { ...this, api_key: this.api_key === null ? null : '[hidden]' };
  }

  [inspect.custom](): ProviderSettings {
    return this.toJSON();
  }
}

/** The settings that the fields mean. */
export function routerSettings(fields: RouterFields): RouterSettings {
  return {
    default_provider: fields.default_provider,
    providers: Object.fromEntries([...fields.providers].map(([id, provider]) => [id, new Provider(provider)])),
    routing_heuristics: fields.routing_heuristics.map(({ pattern, provider }) => ({ pattern, provider })),
    settings: { ...fields.settings },
  };
}
