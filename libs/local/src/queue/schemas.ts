import type { FunctionContract, Schema } from '#libs/contracts';

const draft = 'http://json-schema.org/draft-07/schema#';
const object = (properties: { [name: string]: Schema }, required: string[]): Schema => ({
  $schema: draft,
  properties,
  required,
  type: 'object',
});

const text: Schema = { type: 'string' };
const name: Schema = { description: 'Name of the queue.', minLength: 1, type: 'string' };
const optionalCount = (description: string): Schema => ({ description, minimum: 0, type: ['integer', 'null'] });
const count: Schema = { minimum: 0, type: 'integer' };
const messageId: Schema = { description: 'The receipt id of the job.', minLength: 1, type: 'string' };
/** A queue by either of its two names. */
const byName = (properties: { [name: string]: Schema }, required: string[]): Schema => ({
  ...(object({ queue: name, topic: name, ...properties }, required) as object),
  anyOf: [{ required: ['queue'] }, { required: ['topic'] }],
});

/** Description and schemas of the functions of the queue. */
export const queueFunctions = {
  define: {
    description: 'Makes a queue, or changes how it works.',
    request: object(
      {
        queue: name,
        config: {
          properties: {
            type: { description: '`fifo`: jobs of one group in order. `standard`: each for itself.', enum: ['standard', 'fifo'] },
            message_group_field: { description: 'Field of the payload that names the group; `fifo` needs it.', type: ['string', 'null'] },
            concurrency: optionalCount('Jobs that run side by side, in one process or in all that share the queue by Redis. Default 10.'),
            max_retries: optionalCount('Tries after the first one. Default 3.'),
            backoff_ms: optionalCount('Pause before the first retry, in ms; doubles with each. Default 1000.'),
            timeout_ms: optionalCount('How long one try may take, in ms. Default 1800000.'),
            poll_interval_ms: optionalCount('Taken and not needed: jobs are handed over at once.'),
            redeliver_on_engine_restart: {
              description: 'Taken and not needed: jobs always outlive the process.',
              type: ['boolean', 'null'],
            },
          },
          required: ['type'],
          type: 'object',
        },
      },
      ['queue', 'config'],
    ),
    response: object({ queue: text, changed: { type: 'boolean' } }, ['queue', 'changed']),
  },
  redrive: {
    description: 'Queues all dead jobs of a queue anew.',
    request: byName({}, []),
    response: object({ queue: text, redriven: count }, ['queue', 'redriven']),
  },
  redriveMessage: {
    description: 'Queues one dead job anew.',
    request: byName({ message_id: messageId }, ['message_id']),
    response: object({ queue: text, message_id: text, redriven: count }, ['queue', 'message_id', 'redriven']),
  },
  discardMessage: {
    description: 'Removes one dead job for good.',
    request: byName({ message_id: messageId }, ['message_id']),
    response: object({ queue: text, message_id: text, redriven: count }, ['queue', 'message_id', 'redriven']),
  },
  dlqMessages: {
    description: 'Lists the dead jobs of a queue, the oldest first.',
    request: byName(
      { limit: optionalCount('50 by default, 500 at most.'), offset: optionalCount('How many to leave out. Default 0.') },
      [],
    ),
    response: {
      $schema: draft,
      items: object(
        {
          id: text,
          queue: text,
          function_id: text,
          payload: true,
          error: { type: ['string', 'null'] },
          attempts: count,
          created_at: count,
        },
        ['id', 'queue', 'function_id', 'payload', 'attempts', 'created_at'],
      ),
      type: 'array',
    },
  },
} as const satisfies { [name: string]: FunctionContract };
