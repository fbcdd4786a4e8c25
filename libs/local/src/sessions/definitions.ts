import { messagesDefinitions, ref, type Schema } from '#libs/contracts';

type ObjectSchema = { readonly [keyword: string]: unknown };

const text: Schema = { type: 'string' };
const optionalText: Schema = { type: ['string', 'null'] };
const time: Schema = { description: 'Ms since the epoch.', format: 'int64', type: 'integer' };
const count: Schema = { format: 'uint64', minimum: 0, type: 'integer' };
const anyObject = (description: string): Schema => ({ additionalProperties: true, description, type: ['object', 'null'] });

/** The same object schema, with these fields optional. */
function lenient(schema: Schema | undefined, optional: readonly string[]): Schema {
  const whole = schema as ObjectSchema;
  return { ...whole, required: (whole['required'] as string[]).filter((field) => !optional.includes(field)) };
}

const isCall = (block: ObjectSchema): boolean => JSON.stringify(block['properties']).includes('"function_call"');
const block = messagesDefinitions['ContentBlock'] as ObjectSchema;

const entryBase = {
  id: text,
  origin: anyObject('What its writer said of it.'),
  parent_id: optionalText,
  revision: { default: 0, ...count },
  timestamp: time,
};

/** Definitions that the schemas of the session functions refer to. */
export const sessionDefinitions: { [name: string]: Schema } = {
  ...messagesDefinitions,
  ContentBlock: { ...block, oneOf: (block['oneOf'] as ObjectSchema[]).map((one) => (isCall(one) ? lenient(one, ['arguments']) : one)) },
  FunctionResultMessage: lenient(messagesDefinitions['FunctionResultMessage'], ['details', 'is_error']),
  Role: { enum: ['user', 'assistant', 'function_result', 'custom'], type: 'string' },
  CustomPayload: {
    description: 'Data of an app that is kept in the conversation and that no model sees.',
    properties: { custom_type: { description: 'What kind of data it is, e.g. `compaction`.', type: 'string' }, data: { default: null } },
    required: ['custom_type'],
    type: 'object',
  },
  SessionStatus: { enum: ['idle', 'working', 'done', 'error'], type: 'string' },
  ListOrder: { enum: ['created_asc', 'created_desc', 'updated_desc'], type: 'string' },
  AttachmentMeta: {
    properties: { attachment_id: text, created_at: time, mime: text, name: text, session_id: text, sha256: text, size: count },
    required: ['attachment_id', 'created_at', 'mime', 'name', 'session_id', 'sha256', 'size'],
    type: 'object',
  },
  SessionMeta: {
    properties: {
      created_at: time,
      description: text,
      draft: { description: 'Text that was typed and not sent yet.', type: ['string', 'null'] },
      draft_attachments: { items: ref('AttachmentMeta'), type: ['array', 'null'] },
      forked_from: { description: 'The session that this one is a fork of.', type: ['string', 'null'] },
      message_count: { description: 'Messages in it, on all branches; custom entries do not count.', ...count },
      metadata: anyObject('What apps keep with it; lists and bindings can filter by it.'),
      session_id: text,
      status: ref('SessionStatus'),
      status_reason: { description: 'Why it has this status, in a few words.', type: ['string', 'null'] },
      title: text,
      updated_at: time,
    },
    required: ['created_at', 'description', 'message_count', 'session_id', 'status', 'title', 'updated_at'],
    type: 'object',
  },
  SessionEntry: {
    oneOf: [
      {
        properties: { kind: { enum: ['message'], type: 'string' }, message: ref('AgentMessage'), ...entryBase },
        required: ['id', 'kind', 'message', 'timestamp'],
        type: 'object',
      },
      {
        properties: { kind: { enum: ['custom'], type: 'string' }, custom_type: text, data: { default: null }, ...entryBase },
        required: ['custom_type', 'id', 'kind', 'timestamp'],
        type: 'object',
      },
    ],
  },
  MessageItem: {
    description: 'An entry of a path: exactly one of `message` and `custom`.',
    properties: {
      custom: { anyOf: [ref('CustomPayload'), { type: 'null' }] },
      entry_id: text,
      message: { anyOf: [ref('AgentMessage'), { type: 'null' }] },
      origin: anyObject('What its writer said of it; messages only.'),
    },
    required: ['entry_id'],
    type: 'object',
  },
  TailItem: {
    description: 'As a `MessageItem`; `elided` when arguments, results and thinking were left out.',
    properties: {
      custom: { anyOf: [ref('CustomPayload'), { type: 'null' }] },
      elided: { type: ['boolean', 'null'] },
      entry_id: text,
      message: { anyOf: [ref('AgentMessage'), { type: 'null' }] },
      origin: anyObject('What its writer said of it; messages only.'),
    },
    required: ['entry_id'],
    type: 'object',
  },
};
