import { type AssistantMessage, type ContentBlock, callsOf, type FunctionCallBlock, type JsonValue } from '#libs/contracts';

/** The name of the one function that a model sees in `agent_trigger` mode. */
export const AGENT_TRIGGER = 'agent_trigger';
/** The synthetic function by which a model hands in its result. */
export const SUBMIT_RESULT = 'submit_result';
/** The function that starts a sub-agent; inside a turn the loop carries it out itself. */
export const SPAWN = 'harness::spawn';

/** A call that the loop refuses by itself, with a stable code for `details.error`. */
export interface CallRefusal {
  code: 'policy_denied' | 'too_many_calls' | 'arguments_truncated' | 'agent_trigger_no_target' | 'invalid_arguments';
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
  /** True when a pre-trigger hook is bound to its target. */
  hooked: boolean;
  /** What a call of `submit_result` hands in; null for every other call. */
  submission: Submission | null;
}

/** A value handed in for the output contract, with what is wrong with it. */
export interface Submission {
  value: JsonValue;
  fault: string | null;
}

/** What a plan depends on beside the message. */
export interface PlanContext {
  /** Why the policy refuses a function; null when it does not. */
  refusalOf(functionId: string): string | null;
  isHooked(functionId: string): boolean;
  /** What is wrong with a submitted value; undefined when the turn takes no submissions. */
  submissionFault?: (value: JsonValue) => string | null;
}

/** Calls of one answer that are carried out. */
const MAX_CALLS = 128;
const KEEPABLE_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Ids whose result entry would have the id of another entry of the turn. */
const RESERVED_ID = /^(?:\d+_(?:assistant|compaction)|nudge_\d+|error|stopped|max_turns)$/;

/**
 * Makes the calls of an assistant message addressable: every id is unique in the conversation and safe in an entry id.
 * A provider's id is kept when it is new, else the call gets one derived from turn, step and place. An exact repeat of a
 * call inside the message is dropped.
 */
export function addressCalls(message: AssistantMessage, turnId: string, step: number, isKnown: (id: string) => boolean): AssistantMessage {
  const calls = callsOf(message.content);
  if (calls.length === 0) return message;
  const given = new Set<string>();
  const used = new Set<string>();
  const isFree = (id: string): boolean => KEEPABLE_ID.test(id) && !RESERVED_ID.test(id) && !used.has(id) && !isKnown(id);
  const content: ContentBlock[] = [];
  let place = 0;
  for (const block of message.content) {
    if (block.type !== 'function_call') {
      content.push(block);
      continue;
    }
    const identity = JSON.stringify([block.id, block.function_id, block.arguments]);
    if (block.id !== '' && given.has(identity)) continue;
    given.add(identity);
    let id = block.id;
    for (; !isFree(id); place += 1) id = `fc_${turnId}_${step}_${place}`.replace(/[^A-Za-z0-9_-]/g, '_').slice(-64);
    used.add(id);
    content.push({ ...block, id });
  }
  return { ...message, content };
}

/** What the calls of a stored assistant message ask for. A pure function of its arguments, so a resume plans the same. */
export function planCalls(message: AssistantMessage, context: PlanContext): PlannedCall[] {
  const calls = callsOf(message.content);
  return calls.map((call, index) => {
    const unwrapped = unwrap(call);
    if (index >= MAX_CALLS) return { ...unwrapped, refusal: tooMany(unwrapped.function_id) };
    const cut = message.stop_reason === 'length' && index === calls.length - 1 && message.content.at(-1) === call;
    if (cut) return { ...unwrapped, refusal: truncated(unwrapped.function_id) };
    if (unwrapped.function_id === SUBMIT_RESULT && context.submissionFault !== undefined)
      return submissionOf(unwrapped, context.submissionFault);
    return {
      ...unwrapped,
      refusal: unwrapped.refusal ?? policyRefusal(unwrapped.function_id, context.refusalOf),
      hooked: context.isHooked(unwrapped.function_id),
    };
  });
}

/** The schema of a submission is that of its value, or of an object that holds it under `result` when it is not an object. */
function submissionOf(call: PlannedCall, faultOf: (value: JsonValue) => string | null): PlannedCall {
  if (call.refusal !== null) return call;
  const given = call.arguments as { [key: string]: JsonValue };
  const fault = faultOf(given);
  const wrapped = Object.keys(given).length === 1 ? given['result'] : undefined;
  const unwraps = fault !== null && wrapped !== undefined && faultOf(wrapped) === null;
  return { ...call, submission: unwraps ? { value: wrapped, fault: null } : { value: given, fault } };
}

const tooMany = (functionId: string): CallRefusal => ({
  code: 'too_many_calls',
  message: `${functionId} was not called: one answer may make ${MAX_CALLS} calls. Call it again in your next answer.`,
});

const truncated = (functionId: string): CallRefusal => ({
  code: 'arguments_truncated',
  message: `${functionId} was not called: the answer reached its length limit inside this call, so its arguments are incomplete. Call it again with less to write.`,
});

function policyRefusal(functionId: string, refusalOf: (functionId: string) => string | null): CallRefusal | null {
  const message = refusalOf(functionId);
  return message === null ? null : { code: 'policy_denied', message };
}

function unwrap(call: FunctionCallBlock): PlannedCall {
  const base = { id: call.id, description: null, hooked: false, submission: null };
  const given = objectOf(call.arguments);
  if (given !== null && isUnparsed(given))
    return { ...base, function_id: call.function_id, arguments: given, refusal: malformed(call.function_id, given['_raw'] ?? '') };
  if (call.function_id !== AGENT_TRIGGER) {
    if (given !== null) return { ...base, function_id: call.function_id, arguments: given, refusal: null };
    return { ...base, function_id: call.function_id, arguments: call.arguments, refusal: malformed(call.function_id, call.arguments) };
  }
  if (given === null)
    return { ...base, function_id: AGENT_TRIGGER, arguments: call.arguments, refusal: malformed(AGENT_TRIGGER, call.arguments) };
  const { function: target, description, payload, ...rest } = given;
  if (typeof target !== 'string' || target.trim() === '') {
    return {
      ...base,
      function_id: AGENT_TRIGGER,
      arguments: given,
      refusal: {
        code: 'agent_trigger_no_target',
        message: 'Nothing was called: `function` must be the id of the function to call, for example "engine::functions::list".',
      },
    };
  }
  const args = payload === undefined || payload === null ? rest : payload;
  return {
    ...base,
    function_id: target.trim(),
    arguments: args,
    description: typeof description === 'string' ? description : null,
    refusal: null,
  };
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

/** How a provider hands over arguments that it could not parse. */
const isUnparsed = (given: { [key: string]: JsonValue }): boolean => given['_partial'] === true && ('_raw' in given || '_invalid' in given);

const malformed = (functionId: string, value: JsonValue): CallRefusal => ({
  code: 'invalid_arguments',
  message: `${functionId} was not called: its arguments must be a JSON object, but were ${typeof value === 'string' ? 'text that is not one' : JSON.stringify(value)?.slice(0, 200)}.`,
});
