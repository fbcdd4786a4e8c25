import type { Schema } from '#libs/contracts';

const nullable = (schema: object): Schema => ({ anyOf: [schema, { type: 'null' }] });

/**
 * Schema of `provider::<id>::stream`. Messages are only checked for their role: the transcript was checked when it was
 * written, and checking it again on every step would cost more the longer a session is.
 */
export const STREAM_REQUEST: Schema = {
  type: 'object',
  required: ['writer_ref', 'model', 'messages'],
  properties: {
    writer_ref: {
      type: 'object',
      required: ['channel_id', 'access_key', 'direction'],
      properties: { channel_id: { type: 'string' }, access_key: { type: 'string' }, direction: { enum: ['read', 'write'] } },
      description: 'Write end of the channel that gets the frames.',
    },
    model: { type: 'string', minLength: 1, description: 'Model id as the vendor knows it.' },
    messages: {
      type: 'array',
      description: 'The transcript, oldest message first.',
      items: { type: 'object', required: ['role'], properties: { role: { enum: ['user', 'assistant', 'function_result', 'custom'] } } },
    },
    session_id: { type: ['string', 'null'], description: 'Requests of one session begin alike.' },
    system_prompt: { type: ['string', 'null'] },
    system_sections: nullable({
      type: 'array',
      items: {
        type: 'object',
        required: ['text', 'cache_boundary'],
        properties: { text: { type: 'string' }, cache_boundary: { type: 'boolean' } },
      },
    }),
    tools: nullable({
      type: 'array',
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, description: { type: 'string' }, parameters: true },
      },
    }),
    response_format: nullable({ type: 'object', required: ['type'], properties: { type: { enum: ['json'] }, schema: true } }),
    thinking_level: { enum: ['minimal', 'low', 'medium', 'high', 'xhigh', null] },
    max_output_tokens: { type: ['integer', 'null'], minimum: 1 },
    provider_options: {
      type: ['object', 'null'],
      description: 'What only this provider understands; other keys go into the request body as they are.',
    },
    model_meta: nullable({ type: 'object' }),
    resolution_key: { type: ['string', 'null'] },
  },
};

export const STREAM_RESPONSE: Schema = {
  type: 'object',
  required: ['ok'],
  properties: { ok: { type: 'boolean', description: 'False when the stream ended with an error frame.' } },
};

/** Schema of `provider::<id>::refresh_models`. */
export const REFRESH_REQUEST: Schema = { type: ['object', 'null'] };
export const REFRESH_RESPONSE: Schema = {
  type: 'object',
  required: ['ok', 'count'],
  properties: { ok: { type: 'boolean' }, count: { type: 'integer', minimum: 0, description: 'Models in the catalog now.' } },
};
