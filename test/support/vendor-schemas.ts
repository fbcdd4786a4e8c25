import type { ErrorObject, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

/** The request formats of the vendors, as strict as the vendors themselves are where it hurts. */
const TOOL_NAME = '^[a-zA-Z0-9_-]{1,64}$';
/** Not empty, not only white space, and no half of a surrogate pair. */
const TEXT = { type: 'string', pattern: '\\S', wellFormed: true };
const BASE64 = { type: 'string', minLength: 4, maxLength: 5 * 1_048_576, pattern: '^[A-Za-z0-9+/]+={0,2}$' };
const cache_control = {
  type: 'object',
  required: ['type'],
  properties: { type: { const: 'ephemeral' }, ttl: { enum: ['5m', '1h'] } },
  additionalProperties: false,
};
const closed = (properties: { [name: string]: unknown }, required = Object.keys(properties)): object => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
/** A JSON Schema of parameters: an object at the top, no union there, and itself valid. */
const parameters = {
  type: 'object',
  required: ['type'],
  properties: { type: { const: 'object' }, properties: { type: 'object', propertyNames: { pattern: '^[a-zA-Z0-9_.-]{1,64}$' } } },
  not: { anyOf: ['oneOf', 'anyOf', 'allOf', 'enum', 'not', '$ref', '$schema'].map((key) => ({ required: [key] })) },
  isSchema: true,
};

const text = closed({ type: { const: 'text' }, text: TEXT, cache_control }, ['type', 'text']);
const image = closed(
  {
    type: { const: 'image' },
    cache_control,
    source: closed({
      type: { const: 'base64' },
      media_type: { enum: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] },
      data: BASE64,
    }),
  },
  ['type', 'source'],
);
const byType = (...schemas: object[]): object => ({ anyOf: schemas });

const anthropic = closed(
  {
    model: { type: 'string', minLength: 1 },
    max_tokens: { type: 'integer', minimum: 1 },
    stream: { const: true },
    system: { type: 'array', minItems: 1, items: text },
    messages: {
      type: 'array',
      minItems: 1,
      messageOrder: true,
      anthropicPairing: true,
      items: byType(
        closed({
          role: { const: 'user' },
          content: {
            type: 'array',
            minItems: 1,
            items: byType(
              text,
              image,
              closed(
                {
                  type: { const: 'tool_result' },
                  cache_control,
                  tool_use_id: { type: 'string', pattern: TOOL_NAME },
                  content: { type: 'array', minItems: 1, items: byType(text, image) },
                  is_error: { type: 'boolean' },
                },
                ['type', 'tool_use_id', 'content'],
              ),
            ),
          },
        }),
        closed({
          role: { const: 'assistant' },
          content: {
            type: 'array',
            minItems: 1,
            items: byType(
              text,
              closed({ type: { const: 'thinking' }, thinking: { type: 'string' }, signature: { type: 'string', minLength: 1 } }),
              closed({ type: { const: 'redacted_thinking' }, data: { type: 'string', minLength: 1 } }),
              closed(
                {
                  type: { const: 'tool_use' },
                  id: { type: 'string', pattern: TOOL_NAME },
                  name: { type: 'string', pattern: TOOL_NAME },
                  input: { type: 'object' },
                  cache_control,
                },
                ['type', 'id', 'name', 'input'],
              ),
            ),
          },
        }),
      ),
    },
    tools: {
      type: 'array',
      minItems: 1,
      uniqueNames: true,
      items: closed({ name: { type: 'string', pattern: TOOL_NAME }, description: TEXT, input_schema: parameters, cache_control }, [
        'name',
        'input_schema',
      ]),
    },
    thinking: byType(
      closed({ type: { const: 'enabled' }, budget_tokens: { type: 'integer', minimum: 1024 } }),
      closed(
        {
          type: { const: 'adaptive' },
          display: { enum: ['summarized', 'omitted'] },
          block_binding: closed({ prefix_mismatch_behavior: { enum: ['error', 'drop_block'] } }),
        },
        ['type'],
      ),
      closed({ type: { const: 'disabled' } }),
    ),
    output_config: closed(
      {
        effort: { enum: ['low', 'medium', 'high', 'xhigh', 'max'] },
        format: closed({ type: { const: 'json_schema' }, schema: { type: 'object', isSchema: true } }),
      },
      [],
    ),
    temperature: { type: 'number' },
    top_p: { type: 'number' },
    top_k: { type: 'integer' },
    stop_sequences: { type: 'array' },
    metadata: { type: 'object' },
    service_tier: { type: 'string' },
    tool_choice: { type: 'object' },
  },
  ['model', 'max_tokens', 'messages', 'stream'],
);
Object.assign(anthropic, { fourMarks: true, budgetFits: true });

const dataUrl = { type: 'string', pattern: '^data:image/(jpeg|png|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$' };
const chatText = closed({ type: { const: 'text' }, text: TEXT });
const chat = closed(
  {
    model: { type: 'string', minLength: 1 },
    stream: { const: true },
    stream_options: closed({ include_usage: { const: true } }),
    prompt_cache_key: { type: 'string', minLength: 1, maxLength: 64 },
    messages: {
      type: 'array',
      minItems: 1,
      chatPairing: true,
      items: byType(
        closed({ role: { const: 'system' }, content: TEXT }),
        closed({
          role: { const: 'user' },
          content: byType(TEXT, {
            type: 'array',
            minItems: 1,
            items: byType(
              chatText,
              closed({
                type: { const: 'image_url' },
                image_url: closed({ url: dataUrl, detail: { enum: ['auto', 'low', 'high'] } }, ['url']),
              }),
            ),
          }),
        }),
        {
          ...closed(
            {
              role: { const: 'assistant' },
              content: byType(TEXT, { type: 'null' }),
              tool_calls: {
                type: 'array',
                minItems: 1,
                items: closed({
                  id: { type: 'string', minLength: 1, maxLength: 40, pattern: '^[a-zA-Z0-9_-]+$' },
                  type: { const: 'function' },
                  function: closed({ name: { type: 'string', pattern: TOOL_NAME }, arguments: { type: 'string', jsonObjectText: true } }),
                }),
              },
            },
            ['role', 'content'],
          ),
          anyOf: [{ required: ['tool_calls'] }, { properties: { content: { type: 'string' } } }],
        },
        closed({ role: { const: 'tool' }, tool_call_id: { type: 'string', minLength: 1, maxLength: 40 }, content: TEXT }),
      ),
    },
    tools: {
      type: 'array',
      minItems: 1,
      uniqueNames: true,
      items: closed({
        type: { const: 'function' },
        function: closed({ name: { type: 'string', pattern: TOOL_NAME }, description: TEXT, parameters }, ['name', 'parameters']),
      }),
    },
    max_tokens: { type: 'integer', minimum: 1 },
    max_completion_tokens: { type: 'integer', minimum: 1 },
    reasoning_effort: { enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] },
    response_format: byType(
      closed({ type: { const: 'json_object' } }),
      closed({
        type: { const: 'json_schema' },
        json_schema: closed(
          { name: { type: 'string', pattern: TOOL_NAME }, schema: { type: 'object', isSchema: true }, strict: { type: 'boolean' } },
          ['name', 'schema'],
        ),
      }),
    ),
    temperature: { type: 'number' },
    top_p: { type: 'number' },
    stop: true,
    seed: { type: 'integer' },
    tool_choice: true,
    parallel_tool_calls: { type: 'boolean' },
  },
  ['model', 'messages', 'stream'],
);
Object.assign(chat, { not: { required: ['max_tokens', 'max_completion_tokens'] } });

const inputText = closed({ type: { const: 'input_text' }, text: TEXT });
const inputImage = closed({ type: { const: 'input_image' }, image_url: dataUrl, detail: { enum: ['auto', 'low', 'high'] } });
const responses = closed(
  {
    model: { type: 'string', minLength: 1 },
    stream: { const: true },
    store: { const: false },
    prompt_cache_key: { type: 'string', minLength: 1, maxLength: 64 },
    include: { type: 'array', items: { enum: ['reasoning.encrypted_content'] } },
    instructions: TEXT,
    input: {
      type: 'array',
      minItems: 1,
      responsesPairing: true,
      items: byType(
        closed({ role: { const: 'user' }, content: { type: 'array', minItems: 1, items: byType(inputText, inputImage) } }),
        closed({ role: { const: 'assistant' }, content: TEXT }),
        closed({
          type: { const: 'reasoning' },
          id: { type: 'string', pattern: '^rs_' },
          encrypted_content: { type: 'string', minLength: 1 },
          summary: { type: 'array', items: closed({ type: { const: 'summary_text' }, text: { type: 'string' } }) },
        }),
        closed({
          type: { const: 'function_call' },
          call_id: { type: 'string', minLength: 1, maxLength: 64 },
          name: { type: 'string', pattern: TOOL_NAME },
          arguments: { type: 'string', jsonObjectText: true },
        }),
        closed({
          type: { const: 'function_call_output' },
          call_id: { type: 'string', minLength: 1, maxLength: 64 },
          output: byType(TEXT, { type: 'array', minItems: 1, items: byType(inputText, inputImage) }),
        }),
      ),
    },
    tools: {
      type: 'array',
      minItems: 1,
      uniqueNames: true,
      items: closed(
        {
          type: { const: 'function' },
          name: { type: 'string', pattern: TOOL_NAME },
          description: TEXT,
          parameters,
          strict: { type: 'boolean' },
        },
        ['type', 'name', 'parameters', 'strict'],
      ),
    },
    max_output_tokens: { type: 'integer', minimum: 16 },
    reasoning: closed(
      { effort: { enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] }, summary: { enum: ['auto', 'concise', 'detailed'] } },
      [],
    ),
    text: closed({
      format: byType(
        closed({ type: { const: 'json_object' } }),
        closed({
          type: { const: 'json_schema' },
          name: { type: 'string', pattern: TOOL_NAME },
          schema: { type: 'object', isSchema: true },
          strict: { type: 'boolean' },
        }),
      ),
    }),
    temperature: { type: 'number' },
    top_p: { type: 'number' },
    tool_choice: true,
    parallel_tool_calls: { type: 'boolean' },
  },
  ['model', 'input', 'stream', 'store'],
);

type Row = { [key: string]: unknown };
const rows = (value: unknown): Row[] => (Array.isArray(value) ? (value as Row[]) : []);
/** Checks that cannot be said in JSON Schema; each returns what is wrong, or null. */
const RULES: { [keyword: string]: (value: unknown) => string | null } = {
  wellFormed: (value) => (/\p{Surrogate}/u.test(String(value)) ? 'half of a surrogate pair' : null),
  jsonObjectText: (value) => {
    try {
      const parsed: unknown = JSON.parse(String(value));
      return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? null : 'arguments are no JSON object';
    } catch {
      return 'arguments are not JSON';
    }
  },
  isSchema: (value) =>
    schemas.validateSchema(value as object) === true
      ? unresolved(value as object)
      : `not a valid schema: ${schemas.errorsText(schemas.errors)}`,
  uniqueNames: (value) => {
    const names = rows(value).map((tool) => tool['name'] ?? (tool['function'] as Row)['name']);
    return new Set(names).size === names.length ? null : 'tool names are not unique';
  },
  messageOrder: (value) => {
    const roles = rows(value).map((message) => message['role']);
    if (roles[0] !== 'user') return 'the first message must be a user message';
    if (roles.at(-1) !== 'user') return 'the conversation must end with a user message';
    return roles.some((role, at) => at > 0 && role === roles[at - 1]) ? 'roles must alternate' : null;
  },
  anthropicPairing: (value) => {
    const seen = new Set<unknown>();
    let open: unknown[] = [];
    for (const message of rows(value)) {
      const content = rows(message['content']);
      const results = content.filter((block) => block['type'] === 'tool_result').map((block) => block['tool_use_id']);
      if (message['role'] === 'user') {
        for (const id of open) if (!results.includes(id)) return `tool_use ids were found without tool_result blocks: ${String(id)}`;
        for (const id of results) if (!open.includes(id)) return `unexpected tool_use_id in a tool_result: ${String(id)}`;
        if (new Set(results).size !== results.length) return 'two results for one call';
        const first = content.findIndex((block) => block['type'] !== 'tool_result');
        if (first >= 0 && content.slice(first).some((block) => block['type'] === 'tool_result')) return 'results must come first';
        open = [];
      } else {
        open = content.filter((block) => block['type'] === 'tool_use').map((block) => block['id']);
        for (const id of open) if (seen.has(id)) return `tool_use ids must be unique: ${String(id)}`;
        for (const id of open) seen.add(id);
      }
    }
    return open.length === 0 ? null : 'a call without a result at the end';
  },
  chatPairing: (value) => {
    let open = new Set<unknown>();
    for (const message of rows(value)) {
      if (message['role'] === 'tool') {
        if (!open.delete(message['tool_call_id'])) return `a tool message without its call: ${String(message['tool_call_id'])}`;
        continue;
      }
      if (open.size > 0) return `an assistant message with tool_calls must be followed by tool messages: ${[...open].join()}`;
      if (message['role'] === 'assistant') open = new Set(rows(message['tool_calls']).map((call) => call['id']));
    }
    if (open.size > 0) return 'a call without a result at the end';
    return rows(value).at(-1)?.['role'] === 'assistant' ? 'the conversation must not end with an assistant message' : null;
  },
  responsesPairing: (value) => {
    const items = rows(value);
    const calls = items.filter((item) => item['type'] === 'function_call').map((item) => item['call_id']);
    const outputs = items.filter((item) => item['type'] === 'function_call_output').map((item) => item['call_id']);
    for (const id of calls)
      if (outputs.filter((output) => output === id).length !== 1) return `no tool output found for function call ${String(id)}`;
    for (const id of outputs) if (!calls.includes(id)) return `no tool call found for output ${String(id)}`;
    for (const [at, item] of items.entries()) {
      const next = items[at + 1];
      if (
        item['type'] === 'reasoning' &&
        next?.['type'] !== 'function_call' &&
        next?.['type'] !== 'reasoning' &&
        next?.['role'] !== 'assistant'
      ) {
        return `item ${String(item['id'])} of type 'reasoning' was provided without its required following item`;
      }
    }
    return null;
  },
  fourMarks: (value) => {
    const marks = JSON.stringify(value).split('"cache_control"').length - 1;
    return marks > 4 ? `a maximum of 4 blocks with cache_control may be provided, found ${marks}` : null;
  },
  budgetFits: (value) => {
    const { thinking, max_tokens, messages } = value as {
      thinking?: { type?: string; budget_tokens?: number };
      max_tokens: number;
      messages: Row[];
    };
    if (thinking?.type !== 'enabled') return null;
    if ((thinking.budget_tokens ?? 0) >= max_tokens) return 'max_tokens must be greater than thinking.budget_tokens';
    const [assistant, user] = messages.slice(-2);
    const waits = rows(user?.['content']).some((block) => block['type'] === 'tool_result');
    const first = rows(assistant?.['content'])[0]?.['type'];
    return waits && first !== 'thinking' && first !== 'redacted_thinking'
      ? 'a final assistant message must start with a thinking block'
      : null;
  },
};

/** Names a local `$ref` that leads nowhere. */
function unresolved(schema: object): string | null {
  const refs = [...JSON.stringify(schema).matchAll(/"\$ref":"(#[^"]*)"/g)].map((match) => match[1] ?? '');
  for (const ref of refs) {
    let node: unknown = schema;
    for (const step of ref.slice(2).split('/').filter(Boolean)) node = (node as Row | undefined)?.[step];
    if (node === undefined) return `cannot resolve ${ref}`;
  }
  return null;
}

const schemas = new Ajv2020({ strict: false });
const ajv = new Ajv2020({ strict: false, allErrors: true });
for (const [keyword, rule] of Object.entries(RULES)) {
  const validate: { (schema: unknown, data: unknown): boolean; errors?: Partial<ErrorObject>[] } = (_schema, data) => {
    const wrong = rule(data);
    validate.errors = wrong === null ? [] : [{ keyword, message: wrong, params: {} }];
    return wrong === null;
  };
  ajv.addKeyword({ keyword, validate, errors: true });
}
const VALIDATORS: { [path: string]: ValidateFunction } = {
  '/messages': ajv.compile(anthropic),
  '/chat/completions': ajv.compile(chat),
  '/responses': ajv.compile(responses),
};

/** What is wrong with the body of a request by the rules of the vendor whose path it is; null when nothing is. */
export function bodyViolation(path: string, body: unknown): string | null {
  const name = Object.keys(VALIDATORS).find((ending) => (path.split('?')[0] ?? '').endsWith(ending));
  const validate = name === undefined ? undefined : VALIDATORS[name];
  if (validate === undefined || validate(body)) return null;
  const errors = (validate.errors ?? []).filter((error) => error.keyword !== 'anyOf');
  const own = errors.filter((error) => error.keyword in RULES);
  return (
    (own.length > 0 ? own : errors)
      .slice(0, 6)
      .map((error) => `${error.instancePath}: ${error.message}`)
      .join('; ') || 'not valid'
  );
}
