import { type FunctionContract, ref, root, type Schema } from '#libs/contracts';
import { sessionDefinitions } from './definitions.js';

type Properties = { [name: string]: Schema };

const object = (title: string, properties: Properties, required: string[] = []): Schema =>
  root(sessionDefinitions, { properties, ...(required.length > 0 ? { required } : {}), title, type: 'object' });
const nullable = (title: string, properties: Properties, required: string[]): Schema =>
  root(sessionDefinitions, { anyOf: [{ properties, required, type: 'object' }, { type: 'null' }], title: `Nullable_${title}` });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const listOf = (schema: Schema): Schema => ({ items: schema, type: 'array' });

const text: Schema = { type: 'string' };
const id: Schema = { minLength: 1, type: 'string' };
const optionalText = (description: string): Schema => ({ description, type: ['string', 'null'] });
const optionalId = (description: string): Schema => ({ description, minLength: 1, type: ['string', 'null'] });
const flag: Schema = { type: 'boolean' };
const optionalFlag = (description: string): Schema => ({ description, type: ['boolean', 'null'] });
const anyObject = (description: string): Schema => ({ additionalProperties: true, description, type: ['object', 'null'] });
const limit: Schema = { description: 'Rows of a page: 50 by default, 500 at most.', format: 'uint', minimum: 0, type: ['integer', 'null'] };
const cursor = optionalText('The `next_cursor` of the page before.');
const nextCursor = optionalText('There when more is to come.');
const images = optionalFlag('False leaves out the data of images that were also stored as attachments. Default true.');
const revision: Schema = { format: 'uint64', minimum: 0, type: 'integer' };
const time: Schema = { format: 'int64', type: 'integer' };
const metadata = anyObject('What apps keep with the session; lists and bindings can filter by it.');
const origin = anyObject('What the writer says of the entry, e.g. which turn it belongs to; events carry it.');
const parent = optionalId('The entry to append to; the active leaf when absent.');
const newSession: Properties = { description: optionalText('Empty when absent.'), metadata, title: optionalText('Empty when absent.') };
const meta = ref('SessionMeta');

/** Description and schemas of the `session::*` functions. */
export const sessionFunctions = {
  create: {
    description: 'Makes a new session.',
    request: object('CreateRequest', newSession),
    response: object('CreateResponse', { meta, session_id: text }, ['meta', 'session_id']),
  },
  ensure: {
    description: 'Makes a session under a given id, unless it is there. Title, description and metadata count only when it is made.',
    request: object('EnsureRequest', { ...newSession, session_id: id }, ['session_id']),
    response: object('EnsureResponse', { created: flag, meta, session_id: text }, ['created', 'meta', 'session_id']),
  },
  get: {
    description: 'Tells of a session; null when it is not there.',
    request: object('GetRequest', { session_id: text }, ['session_id']),
    response: nullable('GetResponse', { meta }, ['meta']),
  },
  list: {
    description: 'Lists sessions page by page, by default the last changed first.',
    request: object('ListRequest', {
      cursor,
      limit,
      metadata: anyObject('Only sessions whose metadata has each of these keys with an equal value.'),
      order: { description: 'Default `updated_desc`.', ...(orNull(ref('ListOrder')) as object) },
      status: { description: 'Only sessions with this status.', ...(orNull(ref('SessionStatus')) as object) },
    }),
    response: object('ListResponse', { next_cursor: nextCursor, sessions: listOf(meta) }, ['sessions']),
  },
  fork: {
    description: 'Copies the entries from the root to `entry_id` into a new session, under new ids.',
    request: object('ForkRequest', { entry_id: text, session_id: text, title: optionalText('That of the source when absent.') }, [
      'entry_id',
      'session_id',
    ]),
    response: object('ForkResponse', { meta, session_id: text }, ['meta', 'session_id']),
  },
  setMeta: {
    description: 'Changes title, description or metadata; what is absent stays. Metadata is replaced whole.',
    request: object(
      'SetMetaRequest',
      { description: optionalText('The new description.'), metadata, session_id: text, title: optionalText('The new title.') },
      ['session_id'],
    ),
    response: object('SetMetaResponse', { meta }, ['meta']),
  },
  setStatus: {
    description: 'Sets the status of a session, with a short reason; `idle` has none.',
    request: object('SetStatusRequest', { reason: optionalText('A short reason.'), session_id: text, status: ref('SessionStatus') }, [
      'session_id',
      'status',
    ]),
    response: object('SetStatusResponse', { previous_status: ref('SessionStatus'), status: ref('SessionStatus') }, [
      'previous_status',
      'status',
    ]),
  },
  setDraft: {
    description: 'Keeps text that was typed and not sent. Nobody is told of it.',
    request: object(
      'SetDraftRequest',
      {
        attachment_ids: {
          description: 'Attachments of the draft; this store keeps none, so only an empty list is known.',
          items: text,
          type: ['array', 'null'],
        },
        draft: optionalText('Blank or absent clears it.'),
        session_id: text,
      },
      ['session_id'],
    ),
    response: object('SetDraftResponse', { attachments: listOf(ref('AttachmentMeta')), draft: { type: ['string', 'null'] } }, [
      'attachments',
    ]),
  },
  setActiveLeaf: {
    description: 'Makes an entry the end of the active path; what is appended next follows it.',
    request: object('SetActiveLeafRequest', { entry_id: text, session_id: text }, ['entry_id', 'session_id']),
    response: object('SetActiveLeafResponse', { active_leaf: text }, ['active_leaf']),
  },
  delete: {
    description: 'Removes a session and all its entries. Refused while its turn is not over.',
    request: object('DeleteRequest', { session_id: text }, ['session_id']),
    response: object('DeleteResponse', { deleted: { description: 'False when there was no such session.', type: 'boolean' } }, ['deleted']),
  },
  append: {
    description: 'Appends a message or custom data, which becomes the active leaf. An `entry_id` that is there already changes nothing.',
    request: object(
      'AppendRequest',
      {
        custom: orNull(ref('CustomPayload')),
        entry_id: optionalId('An id of the caller, so that a repeat appends nothing.'),
        message: orNull(ref('AgentMessage')),
        origin,
        parent_id: parent,
        session_id: text,
      },
      ['session_id'],
    ),
    response: object('AppendResponse', { entry_id: text, parent_id: { type: ['string', 'null'] }, timestamp: time }, [
      'entry_id',
      'timestamp',
    ]),
  },
  appendMany: {
    description: 'Appends messages in a chain, all or none. A repeat appends them again.',
    request: object('AppendManyRequest', { messages: listOf(ref('AgentMessage')), origin, parent_id: parent, session_id: text }, [
      'messages',
      'session_id',
    ]),
    response: object('AppendManyResponse', { entry_ids: listOf(text), last_entry_id: text }, ['entry_ids', 'last_entry_id']),
  },
  updateMessage: {
    description: 'Replaces the content of a message.',
    request: object(
      'UpdateMessageRequest',
      {
        content: listOf(ref('ContentBlock')),
        details: { description: 'Only for results and custom messages.' },
        ending: {
          description: 'How an assistant message ended, which a stream tells last. Beyond the contract; only for assistant messages.',
          ...(orNull({
            properties: {
              error_kind: orNull(ref('ErrorKind')),
              error_message: { type: ['string', 'null'] },
              stop_reason: ref('StopReason'),
            },
            required: ['stop_reason'],
            type: 'object',
          }) as object),
        },
        entry_id: text,
        expected_revision: {
          description: 'Nothing is written when the entry has another revision.',
          format: 'uint64',
          minimum: 0,
          type: ['integer', 'null'],
        },
        origin,
        session_id: text,
        usage: { description: 'Only for assistant messages.', ...(orNull(ref('Usage')) as object) },
      },
      ['content', 'entry_id', 'session_id'],
    ),
    response: object('UpdateMessageResponse', { revision, updated: flag }, ['revision', 'updated']),
  },
  messages: {
    description: 'Reads the active path page by page, oldest first.',
    request: object(
      'MessagesRequest',
      {
        after_entry_id: optionalText('Only entries after this one of the path. Without effect beside a cursor.'),
        cursor,
        from_entry_id: optionalText('Reads the path to this entry, not the active one.'),
        include_custom: optionalFlag('Also custom entries. Default false.'),
        include_image_data: images,
        limit,
        roles: { description: 'Only messages of these roles, and no custom entries.', items: ref('Role'), type: ['array', 'null'] },
        session_id: text,
      },
      ['session_id'],
    ),
    response: object('MessagesResponse', { messages: listOf(ref('MessageItem')), next_cursor: nextCursor }, ['messages']),
  },
  messagesTail: {
    description: 'Reads the end of the active path in blocks. A run of calls and results is one block, without arguments and results.',
    request: object(
      'MessagesTailRequest',
      {
        before_entry_id: optionalText('Reads what ends before the block of this entry.'),
        include_custom: optionalFlag('Also custom entries. Default true.'),
        include_image_data: images,
        limit,
        session_id: text,
        until_entry_id: optionalText('Reads back until the block of this entry, whatever the limit.'),
      },
      ['session_id'],
    ),
    response: object(
      'MessagesTailResponse',
      { has_more: flag, messages: listOf(ref('TailItem')), oldest_entry_id: { type: ['string', 'null'] } },
      ['has_more', 'messages'],
    ),
  },
  messagesRange: {
    description: 'Reads whole entries of the active path: those between two, or some by their ids.',
    request: object(
      'MessagesRangeRequest',
      {
        cursor,
        entry_ids: { description: 'These entries, in the order of the path.', items: text, type: ['array', 'null'] },
        from_entry_id: optionalText('The first entry.'),
        include_image_data: images,
        limit,
        session_id: text,
        to_entry_id: optionalText('The last entry.'),
      },
      ['session_id'],
    ),
    response: object('MessagesRangeResponse', { messages: listOf(ref('TailItem')), next_cursor: nextCursor }, ['messages']),
  },
  getMessage: {
    description: 'Reads one entry; null when it is not there.',
    request: object('GetMessageRequest', { entry_id: text, include_image_data: images, session_id: text }, ['entry_id', 'session_id']),
    response: nullable('GetMessageResponse', { entry: ref('SessionEntry') }, ['entry']),
  },
} as const satisfies { [name: string]: FunctionContract };
