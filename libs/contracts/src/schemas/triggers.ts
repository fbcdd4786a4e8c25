import type { Schema } from './schema.js';

const draft = 'http://json-schema.org/draft-07/schema#';

const hookConfig: Schema = {
  $schema: draft,
  ...{
    additionalProperties: false,
    properties: {
      functions: {
        description: 'Globs of function ids; only for pre-trigger and post-trigger.',
        items: { type: 'string' },
        type: ['array', 'null'],
      },
      on_error: {
        description: '`fail_closed` or `fail_open`; by default closed for pre-* and open for post-*.',
        type: ['string', 'null'],
      },
      priority: {
        description: 'Lower runs first; equal ones by function id. Default 0.',
        format: 'int64',
        type: ['integer', 'null'],
      },
      timeout_ms: {
        description: 'How long one call of the hook may take, in ms. Default 5000.',
        format: 'uint64',
        minimum: 0,
        type: ['integer', 'null'],
      },
    },
    title: 'HookTriggerConfig',
    type: 'object',
  },
};

const turnEventConfig: Schema = {
  $schema: draft,
  ...{
    additionalProperties: false,
    properties: {
      parent_session_id: { description: 'Only events of children of this session.', type: ['string', 'null'] },
      session_id: { description: 'Only events of this session.', type: ['string', 'null'] },
    },
    title: 'TurnEventBindingConfig',
    type: 'object',
  },
};

/** The seven trigger types of the harness: description and binding configuration schema. */
export const harnessTriggerTypes = {
  'harness::hook::post-generate': { description: 'After each model call; only observes.', config: hookConfig },
  'harness::hook::post-trigger': { description: 'After each function call; may rewrite its result.', config: hookConfig },
  'harness::hook::pre-generate': {
    description: 'Before each model call; may change the system prompt, append messages, or deny.',
    config: hookConfig,
  },
  'harness::hook::pre-trigger': {
    description: 'Before each function call; may rewrite its arguments, deny or hold it.',
    config: hookConfig,
  },
  'harness::hook::pre-turn': { description: 'Before the first model call of a turn; may deny it.', config: hookConfig },
  'harness::turn-completed': {
    description: 'A turn has reached its end. Delivered at least once, after it is on disk.',
    config: turnEventConfig,
  },
  'harness::turn-started': { description: 'A turn has started.', config: turnEventConfig },
} as const satisfies { [id: string]: { description: string; config: Schema } };
