import type { Schema } from '#libs/contracts';

const draft = 'http://json-schema.org/draft-07/schema#';
const text: Schema = { type: 'string' };
const moment: Schema = { description: 'Ms since the epoch, with fractions.', type: 'number' };

const span: Schema = {
  properties: {
    span_id: text,
    parent_id: { type: ['string', 'null'] },
    session_id: text,
    turn_id: text,
    name: text,
    kind: { enum: ['internal', 'client'] },
    start_ms: moment,
    end_ms: moment,
    error: { description: 'A code that says why it failed; null when it did not.', type: ['string', 'null'] },
    open: { description: 'It goes on: `end_ms` is now.', type: 'boolean' },
    attributes: { type: 'object' },
  },
  required: ['span_id', 'parent_id', 'session_id', 'turn_id', 'name', 'kind', 'start_ms', 'end_ms', 'error', 'open', 'attributes'],
  type: 'object',
};

/** Schemas of `harness-traces::get`. */
export const schemas = {
  get: {
    request: {
      $schema: draft,
      properties: {
        session_id: { minLength: 1, type: 'string' },
        turn_id: { description: "The session's latest turn when absent.", type: ['string', 'null'] },
      },
      required: ['session_id'],
      type: 'object',
    },
    response: {
      $schema: draft,
      properties: { trace_id: text, session_id: text, turn_id: text, status: text, spans: { items: span, type: 'array' } },
      required: ['trace_id', 'session_id', 'turn_id', 'status', 'spans'],
      type: ['object', 'null'],
    },
  },
} satisfies { [name: string]: { request: Schema; response: Schema } };
