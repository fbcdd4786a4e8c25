import type { JsonObject, JsonValue, ThinkingLevel } from '#libs/contracts';
import { wireCallId } from '../shared/names.js';
import { allRequired, outputSchema } from '../shared/output-schema.js';
import type { VendorRun } from '../shared/provider.js';
import { reasons } from './models.js';

/** Images that OpenAI takes. */
export const IMAGES = { mimes: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'], maxEach: 20 * 1_048_576, maxTotal: 40 * 1_048_576 };
/** OpenAI's own address; other servers speak chat completions of an older date. */
export const OFFICIAL_URL = 'https://api.openai.com/v1';

const OWN_OPTIONS = new Set(['api', 'cache']);
const OURS = new Set(['messages', 'input', 'instructions', 'tools', 'stream', 'model', 'store', 'include', 'stream_options']);

/** Which of the two APIs a request uses: `provider_options.api` decides, else Responses for reasoning models of OpenAI itself. */
export function apiOf(run: VendorRun): 'responses' | 'chat' {
  const wanted = run.request.provider_options?.['api'];
  if (wanted === 'responses' || wanted === 'chat') return wanted;
  return run.api_url === OFFICIAL_URL && reasons(run.request.model, run.model) ? 'responses' : 'chat';
}

/** The caller's options that go into the body as they are. */
export const passedOn = (options: JsonObject | null | undefined): JsonObject =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([key]) => !OWN_OPTIONS.has(key) && !OURS.has(key)));

/** What helps OpenAI itself to find the cache of a session; other servers may not know the field. */
export const cacheKey = ({ request, api_url }: VendorRun): { prompt_cache_key?: string } =>
  api_url !== OFFICIAL_URL || request.session_id == null || request.provider_options?.['cache'] === false
    ? {}
    : { prompt_cache_key: wireCallId(request.session_id, MAX_CACHE_KEY) };
const MAX_CACHE_KEY = 64;

/** The output limit to ask for; undefined leaves it to the vendor. */
export function outputLimit({ request, model, max_tokens }: VendorRun): number | undefined {
  if (request.max_output_tokens) return request.max_output_tokens;
  if (max_tokens === undefined) return undefined;
  return Math.min(max_tokens, model?.max_output_tokens ?? max_tokens);
}

/** The vendor's word for a thinking level: the level itself or the nearest that the model knows. */
export function effortOf({ request, model }: VendorRun): string | undefined {
  const level = request.thinking_level;
  if (!level || model?.supports_thinking === false) return undefined;
  const known = model?.reasoning_efforts?.map(({ effort }) => effort);
  if (known !== undefined) return NEAREST[level].find((effort) => known.includes(effort));
  if (level === 'minimal') return 'low'; // newer models know no level below low
  return level === 'xhigh' && model?.supports_xhigh === false ? 'high' : level;
}

const NEAREST: { [level in ThinkingLevel]: string[] } = {
  minimal: ['minimal', 'low', 'none'],
  low: ['low', 'minimal'],
  medium: ['medium', 'low'],
  high: ['high', 'medium'],
  xhigh: ['xhigh', 'high'],
};

/** What is asked for as output: a schema, any JSON, or nothing special. `hint` is what the system prompt must add. */
export type Format = { kind: 'none' } | { kind: 'json'; hint: string } | { kind: 'schema'; schema: JsonObject; strict: boolean };

/** Reads the response format. A schema that cannot be enforced strictly is still sent; one that is no object becomes a request in words. */
export function formatOf({ request, model }: VendorRun): Format {
  const wanted = request.response_format;
  if (wanted === undefined || wanted === null) return { kind: 'none' };
  const { schema } = wanted;
  if (model?.supports_structured_output === false || !isObject(schema)) {
    const like = schema === undefined ? '' : ` It must be valid under this JSON Schema: ${JSON.stringify(schema)}`;
    return { kind: 'json', hint: `Answer with one JSON value and nothing else.${like}` };
  }
  const enforced = outputSchema(schema);
  const strict = enforced !== undefined && enforced['type'] === 'object' && allRequired(enforced);
  return strict ? { kind: 'schema', schema: enforced, strict } : { kind: 'schema', schema, strict: false };
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The system prompt with what the format adds to it; empty when there is none. */
export const systemText = (prompt: string | null | undefined, format: Format): string =>
  [prompt ?? '', format.kind === 'json' ? format.hint : ''].filter((text) => text.trim() !== '').join('\n\n');
