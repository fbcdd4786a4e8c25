import { messagesDefinitions, ref, root, type Schema } from '#libs/contracts';
import { CAPABILITIES } from './catalog.js';

const text: Schema = { type: 'string' };
const optional = (type: string): Schema => ({ type: [type, 'null'] });
const count: Schema = { type: 'integer', minimum: 0 };
const optionalCount: Schema = { type: ['integer', 'null'], minimum: 0 };
const optionalFlag: Schema = { type: ['boolean', 'null'] };
const optionalNumber: Schema = { type: ['number', 'null'], minimum: 0 };
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const object = (properties: { [name: string]: Schema }, required: string[] = []): Schema => ({ type: 'object', properties, required });

const pool: { [name: string]: Schema } = {
  ...messagesDefinitions,
  StreamChannelRef: object({ channel_id: text, access_key: text, direction: { enum: ['read', 'write'] } }, [
    'channel_id',
    'access_key',
    'direction',
  ]),
  Pricing: object({ input: optionalNumber, output: optionalNumber, cache_read: optionalNumber, cache_write: optionalNumber }),
  Model: object(
    {
      id: text,
      provider: text,
      context_window: count,
      max_output_tokens: count,
      display_name: optional('string'),
      input_limit: optionalCount,
      pricing: orNull(ref('Pricing')),
      supports_tools: optionalFlag,
      supports_vision: optionalFlag,
      supports_cache: optionalFlag,
      supports_structured_output: optionalFlag,
      supports_thinking: optionalFlag,
      supports_xhigh: optionalFlag,
      thinking_budgets: { type: ['object', 'null'], additionalProperties: count },
      reasoning_efforts: { type: ['array', 'null'], items: object({ effort: text, description: optional('string') }, ['effort']) },
    },
    ['id', 'provider', 'context_window', 'max_output_tokens'],
  ),
  ErrorShape: object({ code: text, message: text, kind: ref('ErrorKind'), retryable: { type: 'boolean' } }, ['code', 'message']),
  ProviderInfo: object(
    {
      id: text,
      display_name: text,
      configured: { type: 'boolean' },
      available: { type: 'boolean' },
      supports_model_listing: { type: 'boolean' },
      credential_env_var: optional('string'),
    },
    ['id', 'display_name', 'configured', 'available', 'supports_model_listing'],
  ),
};
const publish = (schema: Schema): Schema => root(pool, schema);

/** What a chat asks for. The messages are not checked one by one: they are forwarded as they are. */
const call = {
  model: { type: 'string', minLength: 1, description: 'Model id, as its provider knows it.' },
  messages: { type: 'array', description: 'The conversation, oldest first.' },
  provider: { type: ['string', 'null'], description: 'Sends the model to this provider, also when no catalog has it.' },
  request_id: { type: ['string', 'null'], description: 'A name for the running chat, to abort it by.' },
  session_id: optional('string'),
  system_prompt: optional('string'),
  system_sections: {
    type: ['array', 'null'],
    items: object({ text, cache_boundary: { type: 'boolean' } }, ['text', 'cache_boundary']),
    description: 'The system prompt in parts; together they are system_prompt.',
  },
  tools: { type: ['array', 'null'], description: 'Functions that the model may call.' },
  response_format: orNull({ type: 'object', properties: { type: { enum: ['json'] }, schema: true }, required: ['type'] }),
  thinking_level: { enum: ['minimal', 'low', 'medium', 'high', 'xhigh', null] },
  max_output_tokens: optionalCount,
  provider_options: { type: ['object', 'null'], description: 'Options by provider id; only those of the routed provider reach it.' },
  metadata: true,
} satisfies { [name: string]: Schema };
const usage = orNull(ref('Usage'));
const capability: Schema = { enum: [...CAPABILITIES] };

/** Request and response schemas of the router's functions. */
export const schemas = {
  chat: {
    request: publish(object({ writer_ref: ref('StreamChannelRef'), ...call }, ['messages', 'model', 'writer_ref'])),
    response: publish(
      object(
        {
          ok: { type: 'boolean' },
          provider: text,
          model: text,
          stop_reason: orNull(ref('StopReason')),
          usage,
          error: orNull(ref('ErrorShape')),
        },
        ['ok', 'provider', 'model'],
      ),
    ),
  },
  complete: {
    request: publish(object(call, ['messages', 'model'])),
    response: publish(object({ message: ref('AssistantMessage'), usage, provider: text, model: text }, ['message', 'provider', 'model'])),
  },
  abort: {
    request: publish(object({ request_id: text }, ['request_id'])),
    response: publish(object({ aborted: { type: 'boolean' } }, ['aborted'])),
  },
  route: {
    request: publish(object({ model: { type: 'string', minLength: 1 }, provider: optional('string') }, ['model'])),
    response: publish(object({ provider: text, candidates: { type: 'array', items: text } }, ['provider', 'candidates'])),
  },
  systemPrompt: {
    request: publish(object({ provider: optional('string') })),
    response: publish(object({ provider: optional('string'), system_prompt: optional('string') })),
  },
  modelsList: {
    request: publish(
      object({
        provider: optional('string'),
        capability: { enum: [...CAPABILITIES, null] },
        modality: { enum: ['chat', 'stt', 'tts', 'any', null] },
      }),
    ),
    response: publish(object({ models: { type: 'array', items: ref('Model') } }, ['models'])),
  },
  modelsGet: {
    request: publish(object({ provider: text, id: text })),
    response: publish(orNull(object({ model: ref('Model') }, ['model']))),
  },
  modelsBudget: {
    request: publish(object({ id: text, provider: optional('string'), max_output_tokens: optionalCount })),
    response: publish(
      orNull(object({ model: ref('Model'), effective_max_output_tokens: count }, ['model', 'effective_max_output_tokens'])),
    ),
  },
  modelsSupports: {
    request: publish(object({ provider: text, id: text, capability }, ['provider', 'id', 'capability'])),
    response: publish(object({ supported: { type: 'boolean' } }, ['supported'])),
  },
  modelsReconcile: {
    request: publish(
      object({ provider: text, token: optional('string'), models: { type: 'array', items: ref('Model') } }, ['provider', 'models']),
    ),
    response: publish(object({ provider: text, count }, ['provider', 'count'])),
  },
  providerList: {
    request: publish(object({})),
    response: publish(object({ providers: { type: 'array', items: ref('ProviderInfo') } }, ['providers'])),
  },
  providerRegister: {
    request: publish(
      object(
        {
          id: text,
          display_name: optional('string'),
          credential_env_var: optional('string'),
          defaults: orNull(object({ api_url: optional('string'), max_tokens: optionalCount })),
          config_schema: true,
          supports_model_listing: optionalFlag,
          models: { type: ['array', 'null'], items: ref('Model') },
          system_prompt: optional('string'),
          worker_id: optional('string'),
          token: optional('string'),
        },
        ['id'],
      ),
    ),
    response: publish(object({ ok: { type: 'boolean' }, id: text, registration_token: text }, ['ok', 'id', 'registration_token'])),
  },
  providerResolve: {
    request: publish(object({ id: text, token: optional('string') }, ['id'])),
    response: publish(
      object(
        {
          configured: { type: 'boolean' },
          source: { enum: ['config', 'env', 'none'] },
          credential: optional('string'),
          api_url: optional('string'),
          max_tokens: optionalCount,
        },
        ['configured', 'source', 'credential'],
      ),
    ),
  },
  providerUpdateCredential: {
    request: publish(object({ id: text, token: optional('string'), credential: optional('string') }, ['id', 'credential'])),
    response: publish(object({ ok: { type: 'boolean' } }, ['ok'])),
  },
} as const;
