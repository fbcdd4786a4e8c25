import type Anthropic from '@anthropic-ai/sdk';
import type { Model } from '#libs/contracts';
import type { Outcome } from '../shared/draft.js';
import { vendorFetch } from '../shared/http.js';
import type { Vendor, VendorRun } from '../shared/provider.js';
import { ANTHROPIC_MODELS, THINKING_BUDGETS } from './models.js';
import { messagesRequest } from './request.js';
import { readMessages } from './stream.js';

/** No limit of the SDK's own; those are the router's. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const LIST_TIMEOUT_MS = 30_000;

const OFFICIAL_URL = 'https://api.anthropic.com';

async function clientFor(api_url: string, apiKey: string): Promise<Anthropic> {
  const { default: Client } = await import('@anthropic-ai/sdk');
  const baseURL = api_url.replace(/\/v1$/, '');
  return new Client({
    apiKey,
    baseURL,
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    logLevel: 'off',
    openTelemetry: false,
    fetch: vendorFetch as typeof fetch,
    // Other servers that speak this format look for the key where older versions of it were sent.
    ...(api_url === OFFICIAL_URL ? {} : { defaultHeaders: { 'x-api-key': apiKey } }),
  });
}

async function generate(run: VendorRun): Promise<Outcome> {
  const [client, { Stream }] = await Promise.all([clientFor(run.api_url, run.credential), import('@anthropic-ai/sdk/core/streaming')]);
  const { body, betas } = messagesRequest(run);
  const response = await client
    .post('/v1/messages', {
      body,
      stream: true,
      signal: run.signal,
      ...(betas.length === 0 ? {} : { headers: { 'anthropic-beta': betas.join(',') } }),
    })
    .asResponse();
  // The SDK's own iterator swallows pings and aborts, so its events are read one level below.
  return await readMessages(Stream.rawEvents(response), run);
}

async function list({ api_url, credential }: { api_url: string; credential: string }): Promise<Model[]> {
  const client = await clientFor(api_url, credential);
  const models: Model[] = [];
  for await (const info of client.models.list({ limit: 100 }, { timeout: LIST_TIMEOUT_MS })) {
    if (info.lifecycle !== 'retired') models.push(rowOf(info));
  }
  return models;
}

/** A row of the catalog from what the vendor says of a model, completed from the built-in one (prices are not listed). */
function rowOf(info: Anthropic.ModelInfo): Model {
  const known = ANTHROPIC_MODELS.find((model) => model.id === info.id || new RegExp(`^${model.id}-\\d{8}$`).test(info.id));
  const can = info.capabilities;
  const efforts = (['low', 'medium', 'high', 'xhigh', 'max'] as const).filter((effort) => can?.effort?.[effort]?.supported === true);
  const adaptive = can?.thinking?.types?.adaptive?.supported === true;
  const thinking = adaptive
    ? { reasoning_efforts: efforts.map((effort) => ({ effort })), thinking_budgets: undefined }
    : can?.thinking?.types?.enabled?.supported === true
      ? { thinking_budgets: THINKING_BUDGETS, reasoning_efforts: undefined }
      : {};
  const row: Model = {
    ...known,
    id: info.id,
    provider: 'anthropic',
    display_name: info.display_name,
    context_window: info.max_input_tokens ?? known?.context_window ?? 200_000,
    max_output_tokens: info.max_tokens ?? known?.max_output_tokens ?? 32_000,
    supports_tools: true,
    supports_cache: true,
    ...(can === null || can === undefined
      ? {}
      : {
          supports_vision: can.image_input.supported,
          supports_structured_output: can.structured_outputs.supported,
          supports_thinking: can.thinking.supported,
          supports_xhigh: efforts.includes('xhigh'),
          ...thinking,
        }),
  };
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)) as unknown as Model;
}

/** What is Anthropic's own in a provider. */
export const ANTHROPIC: Vendor = {
  id: 'anthropic',
  display_name: 'Anthropic',
  credential_env_var: 'ANTHROPIC_API_KEY',
  official_url: OFFICIAL_URL,
  models: ANTHROPIC_MODELS,
  generate,
  list,
};
