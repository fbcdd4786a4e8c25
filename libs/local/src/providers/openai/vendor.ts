import type OpenAI from 'openai';
import type { Model } from '#libs/contracts';
import type { Outcome } from '../shared/draft.js';
import { keepingErrorBodies, vendorFetch } from '../shared/http.js';
import type { Vendor, VendorRun } from '../shared/provider.js';
import { chatBody } from './chat-request.js';
import { readChat } from './chat-stream.js';
import { OPENAI_MODELS } from './models.js';
import { apiOf, OFFICIAL_URL } from './options.js';
import { responsesBody } from './responses-request.js';
import { readResponses } from './responses-stream.js';

/** No limit of the SDK's own; those are the router's. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const LIST_TIMEOUT_MS = 30_000;
/** For a model of a server that does not say how much it takes. */
const UNKNOWN_CONTEXT = 8_192;

async function clientFor(baseURL: string, apiKey: string): Promise<OpenAI> {
  const { default: Client } = await import('openai');
  return new Client({
    apiKey,
    baseURL,
    maxRetries: 0,
    timeout: NO_TIMEOUT_MS,
    logLevel: 'off',
    organization: null,
    project: null,
    fetch: keepingErrorBodies(vendorFetch) as typeof fetch,
  });
}

async function generate(run: VendorRun): Promise<Outcome> {
  const client = await clientFor(run.api_url, run.credential);
  const { signal } = run;
  switch (apiOf(run)) {
    case 'chat':
      return await readChat(await client.chat.completions.create(chatBody(run), { signal }), run);
    case 'responses':
      return await readResponses(await client.responses.create(responsesBody(run), { signal }), run);
  }
}

/** What servers beside OpenAI tell of a model in their list, each in its own field. */
interface Listed {
  id: string;
  max_model_len?: number;
  context_length?: number;
  max_context_length?: number;
  meta?: { n_ctx?: number; n_ctx_train?: number } | null;
}

async function list({ api_url, credential }: { api_url: string; credential: string }): Promise<Model[]> {
  const client = await clientFor(api_url, credential);
  const listed: Listed[] = [];
  for await (const model of client.models.list({ timeout: LIST_TIMEOUT_MS })) listed.push(model as Listed);
  if (api_url !== OFFICIAL_URL) return listed.map(localRow);
  const ids = new Set(listed.map(({ id }) => id));
  return OPENAI_MODELS.filter((model) => ids.has(model.id));
}

function localRow(listed: Listed): Model {
  const context =
    listed.max_model_len ??
    listed.context_length ??
    listed.max_context_length ??
    listed.meta?.n_ctx ??
    listed.meta?.n_ctx_train ??
    UNKNOWN_CONTEXT;
  return { id: listed.id, provider: 'openai', context_window: context, max_output_tokens: Math.max(1_024, Math.floor(context / 4)) };
}

/** What is OpenAI's own in a provider, for its service and for every server that speaks its format. */
export const OPENAI: Vendor = {
  id: 'openai',
  display_name: 'OpenAI',
  credential_env_var: 'OPENAI_API_KEY',
  official_url: OFFICIAL_URL,
  models: OPENAI_MODELS,
  generate,
  list,
};
