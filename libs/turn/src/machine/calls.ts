import { callsOf, type AssistantMessage, type ContentBlock, type FunctionCallBlock, type JsonValue } from '#libs/contracts';

/** The name of the one function that a model sees in `agent_trigger` mode. */
export const AGENT_TRIGGER = 'agent_trigger';
/** The synthetic function by which a model hands in its result. */
export const SUBMIT_RESULT = 'submit_result';

/** A call that the loop refuses by itself, with a stable code for `details.error`. */
export interface CallRefusal {
  code: 'policy_denied' | 'arguments_truncated' | 'agent_trigger_no_target' | 'invalid_arguments';
  message: string;
}

/** One call of a generation, unwrapped and judged. */
export interface PlannedCall {
  id: string;
  function_id: string;
  arguments: JsonValue;
  /** What the model says that it does; only for showing. */
  description: string | null;
  refusal: CallRefusal | null;
}

const KEEPABLE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Makes the calls of an assistant message addressable: every id is unique in the conversation and safe in an entry id.
 * A provider's id is kept when it is new, else the call gets one derived from turn, step and place. An exact repeat of a
 * call inside the message is dropped.
 */
export function addressCalls(message: AssistantMessage, turnId: string, step: number, isKnown: (id: string) => boolean): AssistantMessage {
  const calls = callsOf(message.content);
  if (calls.length === 0) return message;
  const used = new Map<string, string>();
  const content: ContentBlock[] = [];
  let place = 0;
  for (const block of message.content) {
    if (block.type !== 'function_call') {
      content.push(block);
      continue;
    }
    const identity = JSON.stringify([block.function_id, block.arguments]);
    if (block.id !== '' && used.get(block.id) === identity) continue;
    const keep = KEEPABLE_ID.test(block.id) && !used.has(block.id) && !isKnown(block.id);
    const id = keep ? block.id : `fc_${turnId}_${step}_${place}`.replace(/[^A-Za-z0-9_-]/g, '_').slice(-64);
    place += 1;
    used.set(block.id, identity);
    content.push({ ...block, id });
  }
  return { ...message, content };
}

/** What the calls of a stored assistant message ask for. A pure function of its arguments, so a resume plans the same. */
export function planCalls(message: AssistantMessage, refusalOf: (functionId: string) => string | null): PlannedCall[] {
  const calls = callsOf(message.content);
  return calls.map((call, index) => {
    const unwrapped = unwrap(call);
    const cut = message.stop_reason === 'length' && index === calls.length - 1 && message.content.at(-1) === call;
    return { ...unwrapped, refusal: cut ? truncated(unwrapped.function_id) : (unwrapped.refusal ?? policyRefusal(unwrapped.function_id, refusalOf)) };
  });
}

const truncated = (functionId: string): CallRefusal => ({
  code: 'arguments_truncated',
  message: `${functionId} was not called: the answer reached its length limit inside this call, so its arguments are incomplete. Call it again with less to write.`,
});

function policyRefusal(functionId: string, refusalOf: (functionId: string) => string | null): CallRefusal | null {
  const message = refusalOf(functionId);
  return message === null ? null : { code: 'policy_denied', message };
}

function unwrap(call: FunctionCallBlock): PlannedCall {
  const base = { id: call.id, description: null };
  const given = objectOf(call.arguments);
  if (call.function_id !== AGENT_TRIGGER) {
    if (given !== null) return { ...base, function_id: call.function_id, arguments: given, refusal: null };
    return { ...base, function_id: call.function_id, arguments: call.arguments, refusal: malformed(call.function_id, call.arguments) };
  }
  if (given === null) return { ...base, function_id: AGENT_TRIGGER, arguments: call.arguments, refusal: malformed(AGENT_TRIGGER, call.arguments) };
  const { function: target, description, payload, ...rest } = given;
  if (typeof target !== 'string' || target.trim() === '') {
    return {
      ...base, function_id: AGENT_TRIGGER, arguments: given,
      refusal: { code: 'agent_trigger_no_target', message: 'Nothing was called: `function` must be the id of the function to call, for example "engine::functions::list".' },
    };
  }
  const args = payload === undefined || payload === null ? rest : payload;
  return { id: call.id, function_id: target.trim(), arguments: args, description: typeof description === 'string' ? description : null, refusal: null };
}

/** The arguments as an object: nothing becomes `{}`, a string that holds an object is parsed. Null when it is neither. */
function objectOf(value: JsonValue): { [key: string]: JsonValue } | null {
  if (value === null || value === '') return {};
  if (typeof value === 'object') return Array.isArray(value) ? null : value;
  if (typeof value !== 'string') return null;
  try {
    const parsed = JSON.parse(value) as JsonValue;
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? parsed : null;
  } catch {
    return null; // told to the model as malformed arguments
  }
}

const malformed = (functionId: string, value: JsonValue): CallRefusal => ({
  code: 'invalid_arguments',
  message: `${functionId} was not called: its arguments must be a JSON object, but were ${typeof value === 'string' ? 'text that is not one' : JSON.stringify(value)?.slice(0, 200)}.`,
});
