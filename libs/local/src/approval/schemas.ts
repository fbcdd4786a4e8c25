import { ref, root, type Schema } from '#libs/contracts';

type Properties = { [name: string]: Schema };

const text: Schema = { type: 'string' };
const time: Schema = { description: 'Ms since the epoch.', format: 'int64', type: 'integer' };
const optionalText = (description: string): Schema => ({ description, type: ['string', 'null'] });
const objectOrNull = (description: string): Schema => ({ additionalProperties: true, description, type: ['object', 'null'] });

const record: Schema = {
  properties: {
    arguments_excerpt: { default: null, description: 'The arguments, cut short and without secrets.' },
    assistant_excerpt: optionalText('Not given.'),
    depth: { default: 0, description: '0 for the root session, more for a sub-agent.', format: 'int64', type: 'integer' },
    expires_at: time,
    function_call_id: text,
    function_id: text,
    pending_at: time,
    session_description: optionalText('Description of the session.'),
    session_id: text,
    session_metadata: objectOrNull('Metadata of the session; lists and bindings can filter by it.'),
    session_title: optionalText('Title of the session.'),
    turn_id: text,
  },
  required: ['expires_at', 'function_call_id', 'function_id', 'pending_at', 'session_id', 'turn_id'],
  type: 'object',
};

const definitions: { [name: string]: Schema } = {
  PendingApprovalRecord: record,
  HookCall: {
    properties: { arguments: { default: null }, function_id: text, id: text },
    required: ['function_id', 'id'],
    type: 'object',
  },
  ResolveDecision: { enum: ['allow', 'deny'], type: 'string' },
  GrantScope: {
    oneOf: [
      { description: 'This call alone.', enum: ['once'], type: 'string' },
      { description: 'Every later call of the function in the session and its sub-agents.', enum: ['session'], type: 'string' },
      { description: 'The same as `session`: what holds for all sessions is in the configuration.', enum: ['always'], type: 'string' },
    ],
  },
  EvaluateVerdict: {
    oneOf: [
      { description: 'The call goes on.', enum: ['allow'], type: 'string' },
      { description: 'The call is refused.', enum: ['deny'], type: 'string' },
      { description: 'A person would be asked.', enum: ['needs_approval'], type: 'string' },
    ],
  },
  PermissionMode: { enum: ['manual', 'auto', 'full'], type: 'string' },
  GrantedBy: {
    oneOf: [
      { enum: ['user_click'], type: 'string' },
      { description: 'Not given.', enum: ['seed'], type: 'string' },
    ],
  },
  AlwaysAllowEntry: {
    properties: { function_id: text, granted_at: time, granted_by: ref('GrantedBy') },
    required: ['function_id', 'granted_at', 'granted_by'],
    type: 'object',
  },
  ApprovalSettings: {
    properties: {
      always_allow: { default: [], description: 'Functions that mode `auto` lets pass.', items: ref('AlwaysAllowEntry'), type: 'array' },
      approved_always: { default: [], description: 'Functions that every mode lets pass.', items: ref('AlwaysAllowEntry'), type: 'array' },
      mode: { allOf: [ref('PermissionMode')], default: 'manual' },
      mode_set_at: { default: 0, description: 'Ms since the epoch; 0 when nobody has set it.', format: 'int64', type: 'integer' },
    },
    type: 'object',
  },
  SettingsSource: { enum: ['stored', 'defaults'], type: 'string' },
};

const object = (title: string, properties: Properties, required: string[] = []): Schema =>
  root(definitions, { properties, ...(required.length > 0 ? { required } : {}), title, type: 'object' });
const ofSession = (title: string): Schema => object(title, { session_id: text }, ['session_id']);
const ofFunction = (title: string): Schema => object(title, { function_id: text, session_id: text }, ['function_id', 'session_id']);
const settings = object('SettingsResponse', { settings: ref('ApprovalSettings') }, ['settings']);
const decision = (name: string, more: Properties = {}): Schema => ({
  properties: { decision: { enum: [name], type: 'string' }, ...more },
  required: ['decision', ...Object.keys(more)],
  type: 'object',
});

/** Description and schemas of the `approval::*` functions. */
export const approvalFunctions = {
  'approval::gate': {
    description: 'The pre-trigger hook: says whether a call goes on, is refused, or waits for a person. The harness calls it.',
    request: object(
      'HookInput',
      {
        call: { anyOf: [ref('HookCall'), { type: 'null' }], description: 'The call.' },
        depth: { default: 0, description: 'More than 0 for a sub-agent.', format: 'int64', type: 'integer' },
        metadata: { additionalProperties: true, default: null, description: 'Metadata of the send.', type: ['object', 'null'] },
        point: { default: null, type: ['string', 'null'] },
        session_id: text,
        step: { default: null, format: 'int64', type: ['integer', 'null'] },
        turn_id: text,
      },
      ['session_id', 'turn_id'],
    ),
    response: root(definitions, {
      oneOf: [decision('continue'), decision('deny', { reason: text }), decision('hold')],
      title: 'HookOutput',
    }),
  },
  'approval::resolve': {
    description: 'Decides about a call that waits: `allow` lets it go on, `deny` answers it with a refusal. For people.',
    request: object(
      'ResolveRequest',
      {
        decision: ref('ResolveDecision'),
        function_call_id: text,
        grant_scope: {
          anyOf: [ref('GrantScope'), { type: 'null' }],
          default: null,
          description: 'How far an `allow` goes; this call alone when absent.',
        },
        reason: { default: null, description: 'The model is told it with a `deny`.', type: ['string', 'null'] },
        session_id: text,
      },
      ['decision', 'function_call_id', 'session_id'],
    ),
    response: object(
      'ResolveResponse',
      {
        resolved: { description: 'False when no such call waits: it is settled, or not there yet.', type: 'boolean' },
        turn_resumed: { description: 'True when the turn goes on by it.', type: ['boolean', 'null'] },
      },
      ['resolved'],
    ),
  },
  'approval::list-pending': {
    description: 'Lists the calls that wait for a person, the oldest first.',
    request: object('ListPendingRequest', {
      cursor: { default: null, description: 'The `next_cursor` of the page before.', type: ['string', 'null'] },
      limit: { default: null, description: '50 by default, 500 at most.', format: 'uint', minimum: 0, type: ['integer', 'null'] },
      metadata: {
        additionalProperties: true,
        default: null,
        description: 'Only sessions whose metadata has each of these keys with an equal value.',
        type: ['object', 'null'],
      },
      session_id: { default: null, type: ['string', 'null'] },
    }),
    response: object(
      'ListPendingResponse',
      {
        next_cursor: { type: ['string', 'null'] },
        pending: { description: 'In the order in which they came.', items: ref('PendingApprovalRecord'), type: 'array' },
      },
      ['pending'],
    ),
  },
  'approval::get-pending': {
    description: 'Tells of one call that waits, with all its arguments; null when it does not wait.',
    request: object('GetPendingRequest', { function_call_id: text, session_id: text }, ['function_call_id', 'session_id']),
    response: root(
      {
        ...definitions,
        GetPendingResponse: { properties: { pending: ref('PendingApprovalRecord') }, required: ['pending'], type: 'object' },
      },
      { anyOf: [ref('GetPendingResponse'), { type: 'null' }], title: 'Nullable_GetPendingResponse' },
    ),
  },
  'approval::evaluate': {
    description: 'Says what the gate would say of a call, and changes nothing.',
    request: object(
      'EvaluateRequest',
      {
        arguments: { default: null, description: 'Not looked at.' },
        function_id: { description: 'The function that would be called.', type: 'string' },
        session_id: { description: 'The session whose settings count.', type: 'string' },
      },
      ['function_id', 'session_id'],
    ),
    response: object('EvaluateResponse', { reason: optionalText('Why it would not simply go on.'), verdict: ref('EvaluateVerdict') }, [
      'verdict',
    ]),
  },
  'approval::set-mode': {
    description:
      'Sets the mode of a session: `manual` asks about every call, `auto` about those that may change something, `full` about none.',
    request: object('SetModeRequest', { mode: ref('PermissionMode'), session_id: text }, ['mode', 'session_id']),
    response: settings,
  },
  'approval::get-settings': {
    description: 'Tells the settings that hold for a session, and whether they are stored or those of the configuration.',
    request: ofSession('GetSettingsRequest'),
    response: object(
      'GetSettingsResponse',
      { settings: ref('ApprovalSettings'), source: { allOf: [ref('SettingsSource')], description: 'Where they come from.' } },
      ['settings', 'source'],
    ),
  },
  'approval::clear-settings': {
    description: 'Forgets the settings of a session, so that those of the configuration hold.',
    request: ofSession('ClearSettingsRequest'),
    response: object('ClearSettingsResponse', { cleared: { type: 'boolean' } }, ['cleared']),
  },
  'approval::add-always-allow': {
    description: 'Adds a function to those that mode `auto` lets pass in a session.',
    request: ofFunction('AlwaysAllowMutationRequest'),
    response: settings,
  },
  'approval::remove-always-allow': {
    description: 'Takes a function off the lists of what a session lets pass, so that it is asked about again.',
    request: ofFunction('AlwaysAllowMutationRequest'),
    response: settings,
  },
  'approval::approve-always': {
    description: 'Lets every later call of a function pass in a session, in every mode.',
    request: ofFunction('ApproveAlwaysRequest'),
    response: settings,
  },
} as const;
export type ApprovalFunctionId = keyof typeof approvalFunctions;

const binding: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  additionalProperties: false,
  properties: {
    metadata: objectOrNull('Only sessions whose metadata has each of these keys with an equal value.'),
    session_id: optionalText('Only calls of this session.'),
  },
  type: 'object',
};

/** Description and schemas of the trigger types. */
export const approvalTriggers = {
  'approval::pending-created': {
    description: 'A call waits for a person; its arguments are cut short and hold no secrets.',
    trigger_request_format: binding,
    call_request_format: root(definitions, { ...record, title: 'PendingApprovalRecord' }),
  },
  'approval::pending-resolved': {
    description: 'A call waits for a person no more, whatever settled it.',
    trigger_request_format: binding,
    call_request_format: root(
      { ResolvedOutcome: { enum: ['allow', 'deny', 'timeout', 'aborted'], type: 'string' } },
      {
        properties: {
          function_call_id: text,
          function_id: text,
          outcome: ref('ResolvedOutcome'),
          reason: optionalText('Why it was denied, when somebody said so.'),
          resolved_at: time,
          session_id: text,
          session_metadata: objectOrNull('Metadata of the session.'),
          turn_id: text,
        },
        required: ['function_call_id', 'function_id', 'outcome', 'resolved_at', 'session_id', 'turn_id'],
        title: 'PendingResolvedEvent',
        type: 'object',
      },
    ),
  },
} as const;
