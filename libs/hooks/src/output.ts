import { type HookOutput, type HookPoint, messagesDefinitions, ref, root, type Schema } from '#libs/contracts';
import { violation } from '#libs/iii';

const content: Schema = { type: 'array', items: ref('ContentBlock') };
const annotations: Schema = { type: 'object' };

const MUTATIONS: Record<HookPoint, Schema> = {
  pre_turn: { type: 'object', properties: {}, additionalProperties: false },
  pre_generate: {
    type: 'object',
    properties: { system_prompt: { type: 'string' }, append_messages: { type: 'array', items: ref('AgentMessage') } },
    additionalProperties: false,
  },
  post_generate: { type: 'object', properties: {}, additionalProperties: false },
  pre_trigger: { type: 'object', properties: { arguments: true }, additionalProperties: false },
  post_trigger: { type: 'object', properties: { content, details: true, is_error: { type: 'boolean' } }, additionalProperties: false },
};

const schemas = new Map<string, Schema>();

function schemaOf(point: HookPoint, decision: HookOutput['decision']): Schema {
  const key = `${point} ${decision}`;
  let schema = schemas.get(key);
  if (schema === undefined) {
    const properties: { [name: string]: Schema } = { decision: { type: 'string' } };
    if (decision === 'deny') properties['reason'] = { type: 'string' };
    else properties['mutations'] = MUTATIONS[point];
    if (decision === 'continue') properties['annotations'] = annotations;
    if (decision === 'hold') properties['pending_timeout_ms'] = { type: 'integer', minimum: 0 };
    schema = root(messagesDefinitions, {
      type: 'object',
      properties,
      required: decision === 'deny' ? ['decision', 'reason'] : ['decision'],
    });
    schemas.set(key, schema);
  }
  return schema;
}

/** Which decisions a point may take. */
const DECISIONS: Record<HookPoint, readonly HookOutput['decision'][]> = {
  pre_turn: ['continue', 'deny'],
  pre_generate: ['continue', 'deny'],
  post_generate: ['continue'],
  pre_trigger: ['continue', 'deny', 'hold'],
  post_trigger: ['continue'],
};

/** Checks what a hook answered; nothing means `continue` and is null. Throws what is wrong with anything else. */
export function readOutput(point: HookPoint, value: unknown): HookOutput | null {
  if (value === undefined || value === null) return null;
  const decision = typeof value === 'object' ? (value as { decision?: unknown }).decision : undefined;
  const allowed = DECISIONS[point];
  const known = allowed.find((d) => d === decision);
  if (known === undefined)
    throw new Error(`its decision must be one of ${allowed.join(', ')}, not ${JSON.stringify(decision) ?? typeof value}`);
  const wrong = violation(schemaOf(point, known), value);
  if (wrong !== null) throw new Error(`its answer is not valid: ${wrong}`);
  JSON.stringify(value); // a value that JSON does not have could not be stored
  return value as HookOutput;
}
