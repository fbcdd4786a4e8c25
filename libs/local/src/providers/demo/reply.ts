import {
  type AgentFunction,
  type AgentMessage,
  callsOf,
  type ErrorKind,
  type JsonObject,
  type JsonValue,
  type ResponseFormat,
  type StopReason,
  type ThinkingLevel,
  textOf,
} from '#libs/contracts';

/** One block of an answer. `pauseMs` is the pause before each word of it. */
export type Part = { pauseMs?: number } & (
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'call'; call: PlannedCall }
);

/** A call as it is meant, before it is put into the form that the turn's tools ask for. */
export interface PlannedCall {
  function_id: string;
  arguments: JsonValue;
  /** What it is for, in a few words. */
  description: string;
}

/** What a generation answers. */
export interface Reply {
  parts: Part[];
  end:
    | { stop_reason: Extract<StopReason, 'end' | 'length' | 'function_call'> }
    | { error: { kind: ErrorKind; message: string; retryAfterMs?: number } };
}

/** What an answer depends on. */
export interface Prompt {
  messages: readonly AgentMessage[];
  tools: readonly AgentFunction[];
  responseFormat: ResponseFormat | null;
  thinkingLevel: ThinkingLevel | null;
}

/** The result of a call of this turn. */
export interface CallResult {
  function_id: string;
  arguments: JsonValue;
  text: string;
  details: JsonValue;
  is_error: boolean;
}

/** The turn as the messages show it: what was asked, how often the model has answered since, and what its calls gave. */
export interface Turn {
  request: string;
  generation: number;
  results: CallResult[];
}

/** Name of the generic tool that calls a function by its id. */
export const AGENT_TRIGGER = 'agent_trigger';
/** Name of the tool that hands in a structured result. */
export const SUBMIT_RESULT = 'submit_result';

/** Reads the turn off the messages: everything after the last user message with text belongs to it. */
export function turnOf(messages: readonly AgentMessage[]): Turn {
  const last = messages.findLastIndex((message) => message.role === 'user' && textOf(message.content).trim() !== '');
  const asked = messages[last];
  const turn: Turn = { request: asked === undefined ? '' : textOf(asked.content).trim(), generation: 0, results: [] };
  const calls = new Map<string, { function_id: string; arguments: JsonValue }>();
  for (const message of messages.slice(last + 1)) {
    if (message.role === 'assistant') {
      turn.generation++;
      for (const call of callsOf(message.content)) calls.set(call.id, unwrap(call));
    } else if (message.role === 'function_result') {
      turn.results.push({
        function_id:
          message.function_id === AGENT_TRIGGER ? (calls.get(message.function_call_id)?.function_id ?? AGENT_TRIGGER) : message.function_id,
        arguments: calls.get(message.function_call_id)?.arguments ?? null,
        text: textOf(message.content),
        details: message.details,
        is_error: message.is_error,
      });
    }
  }
  return turn;
}

function unwrap(call: { function_id: string; arguments: JsonValue }): { function_id: string; arguments: JsonValue } {
  if (call.function_id !== AGENT_TRIGGER) return call;
  const { function: target, payload } = asObject(call.arguments);
  return { function_id: typeof target === 'string' ? target : AGENT_TRIGGER, arguments: payload ?? null };
}

/** The call in the form that the tools ask for: directly, or through `agent_trigger`. */
export function asTool(call: PlannedCall, tools: readonly AgentFunction[]): { function_id: string; arguments: JsonValue } {
  const direct = tools.some((tool) => tool.name === call.function_id) || !hasAgentTrigger(tools);
  if (direct) return { function_id: call.function_id, arguments: call.arguments };
  return { function_id: AGENT_TRIGGER, arguments: { function: call.function_id, description: call.description, payload: call.arguments } };
}

export const hasAgentTrigger = (tools: readonly AgentFunction[]): boolean => tools.some((tool) => tool.name === AGENT_TRIGGER);

/** The value when it is a JSON object, else an empty one. */
export const asObject = (value: JsonValue | undefined): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** Cuts a text at a code point and says how much is left out. */
export function short(text: string, max: number): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  const points = [...flat];
  return points.length <= max
    ? flat
    : `${points
        .slice(0, max - 1)
        .join('')
        .trimEnd()}…`;
}

/** Inline code, also around text that holds backticks. */
export const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``);
