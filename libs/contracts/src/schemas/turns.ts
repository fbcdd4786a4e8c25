import { ref, type Schema } from './schema.js';

/** The option and report types of the harness functions, as JSON Schema definitions. Key order and titles equal the published contract. */
export const turnsDefinitions: { [name: string]: Schema } = {
  TriggerCall: {
    properties: {
      arguments: true,
      function_id: { description: 'The function to call, not `agent_trigger`.', type: 'string' },
      id: { description: 'The id of the call; its result carries the same one.', type: 'string' },
    },
    required: ['arguments', 'function_id', 'id'],
    type: 'object',
  },
  TriggerPendingResponse: {
    properties: {
      function_call_id: { type: 'string' },
      function_id: { type: 'string' },
      pending: { type: 'boolean' },
      pending_timeout_ms: { format: 'uint64', minimum: 0, type: ['integer', 'null'] },
    },
    required: ['function_call_id', 'function_id', 'pending'],
    type: 'object',
  },
  TriggerResultResponse: {
    properties: {
      content: { items: ref('ContentBlock'), type: 'array' },
      details: true,
      duration_ms: { format: 'uint64', minimum: 0, type: 'integer' },
      function_call_id: { type: 'string' },
      function_id: { type: 'string' },
      is_error: { type: 'boolean' },
    },
    required: ['content', 'details', 'duration_ms', 'function_call_id', 'function_id', 'is_error'],
    type: 'object',
  },
  ExposeMode: {
    description: '`agent_trigger`: one generic schema that names its target. `native`: one schema for each allowed function.',
    enum: ['agent_trigger', 'native'],
    type: 'string',
  },
  FunctionPolicy: {
    description: 'What a turn may call. Nothing is callable unless `allow` matches and `deny` does not.',
    properties: {
      allow: {
        description: 'Globs of function ids that may be called; `*` stands for any run of characters.',
        default: [],
        items: { type: 'string' },
        type: 'array',
      },
      deny: {
        description: 'Globs of function ids that may not be called; deny wins over allow.',
        default: [],
        items: { type: 'string' },
        type: 'array',
      },
      expose: {
        description: 'How the model sees callable functions.',
        allOf: [ref('ExposeMode')],
        default: 'agent_trigger',
      },
    },
    type: 'object',
  },
  Mode: {
    description: 'How the agent should work: `plan` first, `ask` (read and answer), or `agent` (act).',
    enum: ['plan', 'ask', 'agent'],
    type: 'string',
  },
  OutputContract: {
    description: 'What the turn must deliver: free text, or a JSON value that meets `schema` when there is one.',
    oneOf: [
      { properties: { type: { enum: ['text'], type: 'string' } }, required: ['type'], type: 'object' },
      {
        properties: { schema: true, type: { enum: ['json'], type: 'string' } },
        required: ['type'],
        type: 'object',
      },
    ],
  },
  SendOptions: {
    description: 'Options of a turn; they are frozen when the turn starts.',
    properties: {
      functions: {
        description: 'The dispatch policy. Without it every call is denied.',
        anyOf: [ref('FunctionPolicy'), { type: 'null' }],
      },
      max_turns: {
        description: 'How many generations the turn may use.',
        format: 'uint32',
        minimum: 0,
        type: ['integer', 'null'],
      },
      metadata: { description: 'Passed on to hooks and traces as it is.' },
      mode: { anyOf: [ref('Mode'), { type: 'null' }] },
      output: { description: 'The deliverable; text when absent.', anyOf: [ref('OutputContract'), { type: 'null' }] },
      system_prompt: {
        description: 'Text for the system prompt, used as `system_prompt_strategy` says.',
        type: ['string', 'null'],
      },
      system_prompt_strategy: {
        description: '`enrich` adds `system_prompt` to the built-in prompt, `override` puts it in its place.',
        allOf: [ref('SystemPromptStrategy')],
        default: 'enrich',
      },
      thinking_level: { anyOf: [ref('ThinkingLevel'), { type: 'null' }] },
    },
    type: 'object',
  },
  SessionInit: {
    description: 'Used only when the send creates the session.',
    properties: { metadata: true, title: { type: ['string', 'null'] } },
    type: 'object',
  },
  SystemPromptStrategy: {
    oneOf: [
      { enum: ['override'], type: 'string' },
      { enum: ['enrich'], type: 'string' },
    ],
  },
  ThinkingLevel: { enum: ['minimal', 'low', 'medium', 'high', 'xhigh'], type: 'string' },
  SpawnOptions: {
    properties: {
      functions: {
        description: 'The policy of the child; what the parent may not call, the child may not either.',
        anyOf: [ref('FunctionPolicy'), { type: 'null' }],
      },
      max_children: {
        description: 'How many children the child may start itself.',
        format: 'uint32',
        minimum: 0,
        type: ['integer', 'null'],
      },
      max_turns: {
        description: 'Generations of the child; never more than its parent has left.',
        format: 'uint32',
        minimum: 0,
        type: ['integer', 'null'],
      },
      mode: { anyOf: [ref('Mode'), { type: 'null' }] },
      output: { description: 'What the child must deliver.', anyOf: [ref('OutputContract'), { type: 'null' }] },
      pending_timeout_ms: {
        description: 'How long the parent waits for the child, in ms.',
        format: 'uint64',
        minimum: 0,
        type: ['integer', 'null'],
      },
      system_prompt: { type: ['string', 'null'] },
      system_prompt_strategy: {
        description: '`enrich` adds `system_prompt` to the built-in prompt, `override` puts it in its place.',
        allOf: [ref('SystemPromptStrategy')],
        default: 'enrich',
      },
      thinking_level: { anyOf: [ref('ThinkingLevel'), { type: 'null' }] },
    },
    type: 'object',
  },
  ChildRef: {
    properties: { function_call_id: { type: 'string' }, session_id: { type: 'string' }, turn_id: { type: 'string' } },
    required: ['function_call_id', 'session_id', 'turn_id'],
    type: 'object',
  },
  StatusReport: {
    properties: {
      children: { items: ref('ChildRef'), type: 'array' },
      depth: { format: 'uint32', minimum: 0, type: 'integer' },
      max_turns: { format: 'uint32', minimum: 0, type: 'integer' },
      pending_function_calls: { description: 'Ids of the calls that the turn waits for.', items: { type: 'string' }, type: 'array' },
      result: true,
      result_error: { type: ['string', 'null'] },
      session_id: { type: 'string' },
      status: ref('TurnStatus'),
      step: { format: 'uint64', minimum: 0, type: 'integer' },
      turn_count: { description: 'Generations so far.', format: 'uint32', minimum: 0, type: 'integer' },
      turn_id: { type: ['string', 'null'] },
    },
    required: ['children', 'depth', 'max_turns', 'pending_function_calls', 'session_id', 'status', 'step', 'turn_count'],
    type: 'object',
  },
  TurnStatus: { enum: ['running', 'awaiting_functions', 'completed', 'cancelled', 'failed'], type: 'string' },
};
