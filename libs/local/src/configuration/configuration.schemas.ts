import type { Schema } from '#libs/contracts';

const id = { type: 'string', description: 'Id of the entry: 1 to 64 of a-z, 0-9, _ and -.' };
const anything = { description: 'Any JSON value.' };
const definition = {
  id,
  name: { type: 'string', description: 'Name for people.' },
  description: { type: 'string', description: 'What the entry is for.' },
  schema: { description: 'JSON Schema of the value.' },
  metadata: { description: 'Whatever the registering worker wants to keep with it.' },
};
const required = ['id', 'name', 'description', 'schema'];
const entry = { type: 'object', properties: definition, required };
const onlyId: Schema = { type: 'object', properties: { id }, required: ['id'] };

/** Description and schemas of each `configuration::*` function. */
export const configurationFunctions = {
  register: {
    description: 'Registers a configuration entry with its JSON Schema. A stored value stays, unless an initial value is given.',
    request: { type: 'object', properties: { ...definition, initial_value: anything }, required },
    response: { type: 'object', properties: { ...definition, value: anything }, required: [...required, 'value'] },
  },
  get: {
    description: 'The value of a configuration entry, with references to the environment expanded unless raw.',
    request: {
      type: 'object',
      properties: { id, raw: { type: ['boolean', 'null'], default: false, description: 'Leave references as they are written.' } },
      required: ['id'],
    },
    response: { type: 'object', properties: { id, value: anything }, required: ['id', 'value'] },
  },
  set: {
    description: 'Replaces the value of a configuration entry, when it fits the schema of the entry. It is in force at once.',
    request: { type: 'object', properties: { id, value: anything }, required: ['id', 'value'] },
    response: { type: 'object', properties: { old_value: anything, new_value: anything }, required: ['new_value'] },
  },
  list: {
    description: 'All configuration entries, without their values.',
    request: { type: ['object', 'null'] },
    response: { type: 'object', properties: { configurations: { type: 'array', items: entry } }, required: ['configurations'] },
  },
  schema: {
    description: 'One configuration entry, without its value.',
    request: onlyId,
    response: entry,
  },
} as const satisfies { [name: string]: { description: string; request: Schema; response: Schema } };

/** The trigger type `configuration`: what a binding may ask for, and what a bound function gets. */
export const configurationTrigger = {
  id: 'configuration',
  description:
    'A configuration entry was registered, changed or deleted. Secrets are hidden in the event; `configuration::get` gives them.',
  trigger_request_format: {
    type: ['object', 'null'],
    properties: {
      configuration_id: { type: ['string', 'null'], description: 'Only this entry.' },
      event_types: {
        type: ['array', 'null'],
        items: { type: 'string', enum: ['configuration:registered', 'configuration:updated', 'configuration:deleted'] },
        description: 'Only these.',
      },
      condition_function_id: { type: ['string', 'null'], description: 'Called with the event first; false skips it.' },
    },
  },
  call_request_format: {
    type: 'object',
    properties: {
      type: { const: 'configuration' },
      event_type: { type: 'string' },
      ...definition,
      old_value: anything,
      new_value: anything,
    },
    required: ['type', 'event_type', ...required, 'old_value', 'new_value'],
  },
} as const;
