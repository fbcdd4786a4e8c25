import { messagesDefinitions as m } from './messages.js';
import { type FunctionContract, ref, root } from './schema.js';
import { turnsDefinitions as t } from './turns.js';

const all = { ...m, ...t };

/** The nine functions of the harness with their published request and response schemas. */
export const harnessFunctions = {
  'harness::function::resolve': {
    description: 'Internal: settles a pending call, or releases a held one, and resumes the turn.',
    request: root(all, {
      properties: {
        action: {
          description:
            '`deliver` (default): these fields are the result. `execute`: let a held call go on through the rest of its pipeline.',
          type: ['string', 'null'],
        },
        content: { items: ref('ContentBlock'), type: ['array', 'null'] },
        details: true,
        function_call_id: { description: 'The pending call.', type: 'string' },
        is_error: { type: ['boolean', 'null'] },
        session_id: { type: 'string' },
        turn_id: { type: 'string' },
      },
      required: ['function_call_id', 'session_id', 'turn_id'],
      title: 'FunctionResolveRequest',
      type: 'object',
    }),
    response: root(all, {
      properties: {
        resolved: {
          description: 'False when the call is unknown or done, or cannot be executed because it is not held.',
          type: 'boolean',
        },
        turn_resumed: { description: 'True when this was the last open call and the next step was queued.', type: 'boolean' },
      },
      required: ['resolved', 'turn_resumed'],
      title: 'FunctionResolveResponse',
      type: 'object',
    }),
  },
  'harness::function::trigger': {
    description:
      'Internal: runs one function call under the policy of the current turn and captures its result, or reports that it is pending.',
    request: root(all, {
      properties: { call: ref('TriggerCall'), session_id: { type: 'string' } },
      required: ['call', 'session_id'],
      title: 'FunctionTriggerRequest',
      type: 'object',
    }),
    response: root(all, { anyOf: [ref('TriggerResultResponse'), ref('TriggerPendingResponse')], title: 'FunctionTriggerResponse' }),
  },
  'harness::on-config-change': {
    description: 'Internal: reads the configuration again and applies it. Bound to configuration changes.',
    request: root(all, {
      properties: {
        id: {
          description: 'Which configuration entry changed. Advisory: the handler reads it again.',
          default: null,
          type: ['string', 'null'],
        },
      },
      title: 'OnConfigChangeEvent',
      type: 'object',
    }),
    response: root(all, {
      properties: { ok: { type: 'boolean' } },
      required: ['ok'],
      title: 'OnConfigChangeResponse',
      type: 'object',
    }),
  },
  'harness::send': {
    description: 'Stores a message and starts a turn for it, or adds it to the turn that is under way. Answers as soon as it is on disk.',
    request: root(all, {
      properties: {
        idempotency_key: {
          description: 'A repeat of the same key answers with the first session and turn, and stores nothing.',
          type: ['string', 'null'],
        },
        message: {
          description: 'What to say: text, or a message of role `user` or `custom`.',
          allOf: [ref('MessageInput')],
        },
        model: { description: 'The model id, e.g. one of `router::models::list`.', type: 'string' },
        options: { anyOf: [ref('SendOptions'), { type: 'null' }] },
        provider: { description: 'The provider id; the router picks one when it is absent.', type: ['string', 'null'] },
        session: {
          description: 'Title and metadata for a session that this send creates.',
          anyOf: [ref('SessionInit'), { type: 'null' }],
        },
        session_id: {
          description: 'The session to go on with; a new one is made when it is absent.',
          type: ['string', 'null'],
        },
      },
      required: ['message', 'model'],
      title: 'SendRequest',
      type: 'object',
    }),
    response: root(all, {
      properties: {
        accepted: { type: 'boolean' },
        deduplicated: { description: 'True when the idempotency key was known.', type: ['boolean', 'null'] },
        merged: {
          description: 'True when the message joined a turn that was already under way.',
          type: ['boolean', 'null'],
        },
        session_id: { type: 'string' },
        turn_id: { type: 'string' },
      },
      required: ['accepted', 'session_id', 'turn_id'],
      title: 'SendResponse',
      type: 'object',
    }),
  },
  'harness::spawn': {
    description: 'Starts a child agent on a task. Inside a turn the call is answered when the child ends.',
    request: root(all, {
      properties: {
        model: { type: ['string', 'null'] },
        options: { anyOf: [ref('SpawnOptions'), { type: 'null' }] },
        provider: { type: ['string', 'null'] },
        session_id: {
          description: 'An existing session to run the child in; a new one by default.',
          type: ['string', 'null'],
        },
        task: { description: 'What the child should do: its first message.', allOf: [ref('MessageInput')] },
      },
      required: ['task'],
      title: 'SpawnRequest',
      type: 'object',
    }),
    response: root(all, {
      properties: { child_session_id: { type: 'string' }, child_turn_id: { type: 'string' } },
      required: ['child_session_id', 'child_turn_id'],
      title: 'SpawnResponse',
      type: 'object',
    }),
  },
  'harness::status': {
    description: 'Reports the latest turn of a session: status, step, open calls, children and result; null when the session has none.',
    request: root(all, {
      properties: { session_id: { type: 'string' } },
      required: ['session_id'],
      title: 'StatusRequest',
      type: 'object',
    }),
    response: root(all, { anyOf: [ref('StatusReport'), { type: 'null' }], title: 'Nullable_StatusReport' }),
  },
  'harness::stop': {
    description: 'Stops a turn and its descendants: no further function is called, open streams are closed.',
    request: root(all, {
      properties: {
        session_id: { type: 'string' },
        turn_id: { description: 'The turn to stop; the current one when absent.', type: ['string', 'null'] },
      },
      required: ['session_id'],
      title: 'StopRequest',
      type: 'object',
    }),
    response: root(all, {
      properties: { stopping: { type: 'boolean' } },
      required: ['stopping'],
      title: 'StopResponse',
      type: 'object',
    }),
  },
  'harness::sweep-pending': {
    description: 'Internal: settles the pending calls whose time is over. Called on a schedule.',
    request: root(all, {
      properties: {
        scheduled_at: {
          description: 'When the sweep was due, ms since the epoch.',
          default: null,
          format: 'int64',
          type: ['integer', 'null'],
        },
      },
      title: 'SweepEvent',
      type: 'object',
    }),
    response: root(all, {
      properties: {
        ok: { type: 'boolean' },
        resolved: { description: 'How many expired calls were settled.', format: 'uint64', minimum: 0, type: 'integer' },
      },
      required: ['ok', 'resolved'],
      title: 'SweepResponse',
      type: 'object',
    }),
  },
  'harness::turn': {
    description: 'Internal: runs one step of a turn. Called by the queue.',
    request: root(all, {
      properties: {
        session_id: { type: 'string' },
        step: { format: 'uint64', minimum: 0, type: 'integer' },
        turn_id: { type: 'string' },
      },
      required: ['session_id', 'step', 'turn_id'],
      title: 'TurnStepPayload',
      type: 'object',
    }),
    response: root(all, {
      properties: {
        next_step: {
          description: 'The step that was queued, if one was.',
          format: 'uint64',
          minimum: 0,
          type: ['integer', 'null'],
        },
        session_id: { type: 'string' },
        skipped: {
          description: 'True when the step was stale or a repeat, and nothing was done.',
          default: false,
          type: 'boolean',
        },
        status: ref('TurnStatus'),
      },
      required: ['session_id', 'status'],
      title: 'TurnStepResult',
      type: 'object',
    }),
  },
} as const satisfies { [id: string]: FunctionContract };

/** The id of one of the harness's functions. */
export type HarnessFunctionId = keyof typeof harnessFunctions;
