import { ref, type Schema } from './schema.js';

/** The message types of the wire, as JSON Schema definitions. Key order and titles equal the published contract. */
export const messagesDefinitions: { [name: string]: Schema } = {
  ContentBlock: {
    description: 'One block of a message; `type` tells which kind.',
    oneOf: [
      {
        properties: { text: { type: 'string' }, type: { enum: ['text'], type: 'string' } },
        required: ['text', 'type'],
        type: 'object',
      },
      {
        properties: { data: { type: 'string' }, mime: { type: 'string' }, type: { enum: ['image'], type: 'string' } },
        required: ['data', 'mime', 'type'],
        type: 'object',
      },
      {
        properties: {
          signature: { type: ['string', 'null'] },
          text: { type: 'string' },
          type: { enum: ['thinking'], type: 'string' },
        },
        required: ['text', 'type'],
        type: 'object',
      },
      {
        properties: { data: { type: 'string' }, type: { enum: ['redacted_thinking'], type: 'string' } },
        required: ['data', 'type'],
        type: 'object',
      },
      {
        properties: {
          arguments: true,
          function_id: { type: 'string' },
          id: { type: 'string' },
          type: { enum: ['function_call'], type: 'string' },
        },
        required: ['arguments', 'function_id', 'id', 'type'],
        type: 'object',
      },
      {
        properties: {
          content: { items: ref('ContentBlock'), type: 'array' },
          function_call_id: { type: 'string' },
          is_error: { type: ['boolean', 'null'] },
          type: { enum: ['function_result'], type: 'string' },
        },
        required: ['content', 'function_call_id', 'type'],
        type: 'object',
      },
    ],
  },
  Usage: {
    properties: {
      cache_read: { format: 'uint64', minimum: 0, type: ['integer', 'null'] },
      cache_write: { format: 'uint64', minimum: 0, type: ['integer', 'null'] },
      cost_usd: { format: 'double', type: ['number', 'null'] },
      input: { format: 'uint64', minimum: 0, type: ['integer', 'null'] },
      output: { format: 'uint64', minimum: 0, type: ['integer', 'null'] },
      reasoning: { format: 'uint64', minimum: 0, type: ['integer', 'null'] },
    },
    type: 'object',
  },
  StopReason: { enum: ['end', 'length', 'function_call', 'aborted', 'error'], type: 'string' },
  ErrorKind: { enum: ['auth_expired', 'rate_limited', 'context_overflow', 'transient', 'permanent'], type: 'string' },
  AssistantRoleTag: { enum: ['assistant'], type: 'string' },
  AssistantMessage: {
    properties: {
      content: { items: ref('ContentBlock'), type: 'array' },
      error_kind: { anyOf: [ref('ErrorKind'), { type: 'null' }] },
      error_message: { type: ['string', 'null'] },
      model: { type: 'string' },
      native_stop_reason: { type: ['string', 'null'] },
      provider: { type: 'string' },
      role: ref('AssistantRoleTag'),
      stop_reason: ref('StopReason'),
      timestamp: { format: 'int64', type: 'integer' },
      usage: { anyOf: [ref('Usage'), { type: 'null' }] },
      warnings: { items: { type: 'string' }, type: ['array', 'null'] },
    },
    required: ['content', 'model', 'provider', 'role', 'stop_reason', 'timestamp'],
    type: 'object',
  },
  FunctionResultRoleTag: { enum: ['function_result'], type: 'string' },
  FunctionResultMessage: {
    properties: {
      content: { items: ref('ContentBlock'), type: 'array' },
      details: true,
      function_call_id: { type: 'string' },
      function_id: { type: 'string' },
      is_error: { type: 'boolean' },
      role: ref('FunctionResultRoleTag'),
      timestamp: { format: 'int64', type: 'integer' },
    },
    required: ['content', 'details', 'function_call_id', 'function_id', 'is_error', 'role', 'timestamp'],
    type: 'object',
  },
  CustomRoleTag: { enum: ['custom'], type: 'string' },
  CustomMessage: {
    properties: {
      content: { items: ref('ContentBlock'), type: 'array' },
      custom_type: { type: 'string' },
      details: true,
      display: { type: ['string', 'null'] },
      role: ref('CustomRoleTag'),
      timestamp: { format: 'int64', type: 'integer' },
    },
    required: ['content', 'custom_type', 'role', 'timestamp'],
    type: 'object',
  },
  UserRoleTag: { enum: ['user'], type: 'string' },
  UserMessage: {
    properties: {
      content: { items: ref('ContentBlock'), type: 'array' },
      role: ref('UserRoleTag'),
      timestamp: { format: 'int64', type: 'integer' },
    },
    required: ['content', 'role', 'timestamp'],
    type: 'object',
  },
  AgentMessage: {
    description: 'One message of a transcript; `role` tells which kind.',
    anyOf: [ref('AssistantMessage'), ref('FunctionResultMessage'), ref('CustomMessage'), ref('UserMessage')],
  },
  MessageInput: {
    description: 'Plain text, or a whole message of role `user` or `custom`.',
    anyOf: [{ type: 'string' }, ref('AgentMessage')],
  },
};
