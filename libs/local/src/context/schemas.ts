import { messagesDefinitions, ref, root, type Schema } from '#libs/contracts';

const count: Schema = { format: 'uint64', minimum: 0, type: 'integer' };
const optionalCount: Schema = { format: 'uint64', minimum: 0, type: ['integer', 'null'] };
const text: Schema = { type: 'string' };
const optionalText: Schema = { type: ['string', 'null'] };
const time: Schema = { format: 'int64', type: 'integer' };
const one = (...values: string[]): Schema => ({ enum: values, type: 'string' });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const object = (properties: { [name: string]: Schema }, required: string[] = []): Schema => ({
  properties,
  ...(required.length === 0 ? {} : { required }),
  type: 'object',
});
/** A field that may be left out, with what it does; null stands for its default. */
const option = (schema: Schema, description: string): Schema => ({ ...(schema as object), default: null, description });
const names: Schema = { items: text, type: ['array', 'null'] };
const index: Schema = { format: 'uint', minimum: 0, type: ['integer', 'null'] };

const content: Schema = { items: ref('ContentBlock'), type: 'array' };
const message = (role: string, properties: { [name: string]: Schema }, required: string[]): Schema =>
  object({ content, role: one(role), timestamp: time, ...properties }, ['content', ...required, 'role', 'timestamp'].sort());
const block = (type: string, properties: { [name: string]: Schema }, required = Object.keys(properties)): Schema =>
  object({ ...properties, type: one(type) }, [...required, 'type'].sort());

const pool: { [name: string]: Schema } = {
  ContentBlock: {
    oneOf: [
      block('text', { text }),
      block('image', { attachment_id: optionalText, data: text, mime: text }, ['data', 'mime']),
      block('file', { attachment_id: text, mime: text, name: text, size: count }),
      block('thinking', { signature: optionalText, text }, ['text']),
      block('redacted_thinking', { data: text }),
      block('function_call', { arguments: { default: null }, function_id: text, id: text }, ['function_id', 'id']),
      block('function_result', { content, function_call_id: text, is_error: { type: ['boolean', 'null'] } }, [
        'content',
        'function_call_id',
      ]),
    ],
  },
  AgentMessage: {
    oneOf: [
      message('user', {}, []),
      message(
        'assistant',
        {
          error_kind: orNull(ref('ErrorKind')),
          error_message: optionalText,
          model: text,
          native_stop_reason: optionalText,
          provider: text,
          stop_reason: ref('StopReason'),
          usage: orNull(ref('Usage')),
          warnings: names,
        },
        ['model', 'provider', 'stop_reason'],
      ),
      message(
        'function_result',
        { details: { default: null }, function_call_id: text, function_id: text, is_error: { default: false, type: 'boolean' } },
        ['function_call_id', 'function_id'],
      ),
      message('custom', { custom_type: text, details: true, display: optionalText }, ['custom_type']),
    ],
  },
  AgentFunction: object(
    {
      description: text,
      execution_mode: orNull(ref('ExecutionMode')),
      label: optionalText,
      name: text,
      parameters: { default: null },
    },
    ['description', 'name'],
  ),
  ExecutionMode: one('parallel', 'sequential'),
  StopReason: messagesDefinitions['StopReason'] as Schema,
  ErrorKind: messagesDefinitions['ErrorKind'] as Schema,
  Usage: messagesDefinitions['Usage'] as Schema,
  ThinkingLevel: one('minimal', 'low', 'medium', 'high', 'xhigh'),
  ModelLimits: object({ context_window: count, input_limit: optionalCount, max_output_tokens: count }, [
    'context_window',
    'max_output_tokens',
  ]),
  ModelInput: object({ id: text, limits: orNull(ref('ModelLimits')), provider: optionalText }, ['id']),
  AssembleOptions: object({
    allow_compaction: option({ type: ['boolean', 'null'] }, 'Whether the older part may be summed up; true when absent.'),
    allow_prune: option({ type: ['boolean', 'null'] }, 'Whether old results may be replaced by placeholders; true when absent.'),
    lease_key: option(optionalText, 'Only one summary at a time is made for a key, e.g. a session id.'),
    max_result_tokens: option(optionalCount, 'Longest result, in tokens; 20000 when absent, 0 = no limit.'),
    previous_summary: option(optionalText, 'The summary of what lies before the messages.'),
    protected_functions: option(names, 'Functions whose results are not pruned.'),
    request_overhead_tokens: option(optionalCount, 'Tokens of the request that are in none of its other parts.'),
    reserved_tokens: option(optionalCount, 'Tokens that stay free; a tenth of the window, 20000 at most, when absent.'),
    tail_turns: option(index, 'Turns at the end that a summary leaves as they are; 2 when absent.'),
    thinking_level: { ...(orNull(ref('ThinkingLevel')) as object), default: null, description: 'Reserves what the model may think.' },
  }),
  CompactOptions: object({
    instructions: option(optionalText, 'What the summary should keep or leave out; 2000 characters of it are read.'),
    lease_key: option(optionalText, 'Only one summary at a time is made for a key, e.g. a session id.'),
    preserve_recent_tokens: option(optionalCount, 'Tokens at the end that are left as they are.'),
    previous_summary: option(optionalText, 'The summary of what lies before the messages.'),
    tail_turns: option(index, 'Turns at the end that are left as they are; 2 when absent.'),
  }),
  PruneOptions: object({
    max_output_chars: option(index, 'Results of at most so many characters stay; 2000 when absent.'),
    min_free_tokens: option(optionalCount, 'Nothing is done when less would become free; 20000 when absent.'),
    protect_recent_tokens: option(optionalCount, 'The newest results, of so many tokens in all, stay; 40000 when absent.'),
    protected_functions: option(names, 'Functions whose results stay.'),
  }),
  ByRoleTokens: object({ assistant: count, custom: count, function_result: count, user: count }, [
    'assistant',
    'custom',
    'function_result',
    'user',
  ]),
  EstimatorName: one('tokenizer', 'heuristic'),
  ModelResolvedWire: one('inline', 'router', 'fallback'),
  Applied: object(
    {
      capped_parts: count,
      capped_tokens: count,
      compacted: { type: 'boolean' },
      initial_token_count: count,
      pruned: { type: 'boolean' },
      pruned_tokens: count,
      summarized_head_tokens: optionalCount,
      summary: optionalText,
      tail_start_index: index,
      tokens_before: optionalCount,
    },
    ['capped_parts', 'capped_tokens', 'compacted', 'initial_token_count', 'pruned', 'pruned_tokens'],
  ),
  AssembleBreakdown: object(
    {
      by_part: { additionalProperties: count, type: ['object', 'null'] },
      by_role: { allOf: [ref('ByRoleTokens')] },
      estimator: ref('EstimatorName'),
      system_prompt_tokens: count,
      tools_tokens: count,
    },
    ['by_role', 'estimator', 'system_prompt_tokens', 'tools_tokens'],
  ),
};

const messages: Schema = { items: ref('AgentMessage'), type: ['array', 'null'] };
const tools: Schema = { default: null, items: ref('AgentFunction'), type: ['array', 'null'] };
const parts: Schema = {
  additionalProperties: text,
  default: null,
  description: 'Texts that are counted by name and are no part of the request.',
  type: ['object', 'null'],
};
const systemPrompt: Schema = { default: null, type: ['string', 'null'] };
const options = (name: string): Schema => orNull(ref(name));
const titled = (title: string, schema: Schema): Schema => ({ ...(schema as object), title });

/** The requests by function; `messages` is filled in below, as it is published and as it is checked. */
const requests = {
  assemble: (list: Schema): Schema =>
    titled(
      'AssembleRequest',
      object({ messages: list, model: ref('ModelInput'), options: options('AssembleOptions'), parts, system_prompt: systemPrompt, tools }, [
        'model',
      ]),
    ),
  compact: (list: Schema): Schema =>
    titled('CompactRequest', object({ messages: list, model: ref('ModelInput'), options: options('CompactOptions') }, ['model'])),
  prune: (list: Schema): Schema =>
    titled(
      'PruneRequest',
      object({
        messages: list,
        model: { ...(orNull(ref('ModelInput')) as object), default: null },
        options: options('PruneOptions'),
      }),
    ),
  countTokens: (list: Schema): Schema =>
    titled(
      'CountTokensRequest',
      object({ messages: list, model: { allOf: [ref('ModelInput')] }, parts, system_prompt: systemPrompt, tools }, ['model']),
    ),
};

const status = (value: string, properties: { [name: string]: Schema } = {}, required: string[] = []): Schema =>
  object({ status: one(value), ...properties }, ['status', ...required]);

const responses: { [name in keyof typeof requests]: Schema } = {
  assemble: titled(
    'AssembleResponse',
    object(
      {
        applied: ref('Applied'),
        breakdown: ref('AssembleBreakdown'),
        effective_max_output_tokens: count,
        messages: { items: ref('AgentMessage'), type: 'array' },
        model_resolved: ref('ModelResolvedWire'),
        system_prompt: text,
        token_count: count,
        usable: count,
      },
      ['applied', 'breakdown', 'effective_max_output_tokens', 'messages', 'model_resolved', 'system_prompt', 'token_count', 'usable'],
    ),
  ),
  compact: titled('CompactResponse', {
    oneOf: [
      status(
        'ok',
        { summary: text, tail_start_index: index, tokens_after: count, tokens_before: count, used_prior_summary: { type: 'boolean' } },
        ['summary', 'tokens_after', 'tokens_before', 'used_prior_summary'],
      ),
      status('busy'),
      status('empty'),
      status('overflow'),
    ],
  }),
  prune: titled(
    'PruneResponse',
    object({ messages: { items: ref('AgentMessage'), type: 'array' }, pruned_parts: count, pruned_tokens: count, scanned_parts: count }, [
      'messages',
      'pruned_parts',
      'pruned_tokens',
      'scanned_parts',
    ]),
  ),
  countTokens: titled(
    'CountTokensResponse',
    object(
      {
        by_part: { additionalProperties: count, type: ['object', 'null'] },
        by_role: orNull(ref('ByRoleTokens')),
        estimator: ref('EstimatorName'),
        tokens: count,
        tools_tokens: optionalCount,
      },
      ['estimator', 'tokens'],
    ),
  ),
};

const unchecked: Schema = { type: ['array', 'null'] };
const contract = (name: keyof typeof requests): { request: Schema; checked: Schema; response: Schema } => ({
  request: root(pool, requests[name](messages)),
  checked: root(pool, requests[name](unchecked)),
  response: root(pool, responses[name]),
});

/** Schemas of the functions of the context worker. `checked` leaves the messages out, which are checked once each. */
export const schemas = {
  assemble: contract('assemble'),
  compact: contract('compact'),
  prune: contract('prune'),
  countTokens: contract('countTokens'),
};

/** What a message is checked against. */
export const messageSchema: Schema = root(pool, ref('AgentMessage'));
