import { type AgentMessage, HARNESS_CODES, HarnessError, type JsonObject, type JsonValue, type SendOptions } from '#libs/contracts';
import { cleanContent, userText } from '../model/text.js';
import { contractFault } from '../output/contract.js';
import { normalizePolicy } from '../policy/policy.js';
import type { HarnessSettings } from '../ports/settings.js';
import type { TurnOptions } from '../record/record.js';

export const invalidRequest = (detail: string): HarnessError => new HarnessError(HARNESS_CODES.invalidRequest, detail);

/** Checks the message of a send (`field` "message") or the task of a spawn ("task"); text becomes a user message. */
export function acceptMessage(message: string | AgentMessage, field: string, now: number): AgentMessage {
  if (typeof message === 'string') {
    if (message.trim() === '') throw invalidRequest(`${field} must not be empty`);
    return userText(message, now);
  }
  if (message.role !== 'user' && message.role !== 'custom') {
    throw new HarnessError(
      HARNESS_CODES.invalidMessageRole,
      `${field}.role must be "user" or "custom", not ${JSON.stringify(message.role)}`,
    );
  }
  const foreign = message.content.findIndex((block) => block.type !== 'text' && block.type !== 'image');
  if (foreign >= 0) throw invalidRequest(`${field}.content[${foreign}].type must be "text" or "image"`);
  const content = cleanContent(message.content);
  if (content.length === 0 && message.role === 'user') throw invalidRequest(`${field}.content must hold some text or an image`);
  return { ...message, content };
}

/** What can be seen for what it is: no spaces, controls, marks of direction and other invisible characters, no halves of a pair. */
const SESSION_ID = /^[^\s\p{Cc}\p{Cf}\p{Cs}]{1,200}$/u;

/** Checks a session id that a caller chose. It never becomes the name of a file, so that it may look like a path. */
export function acceptSessionId(sessionId: string): string {
  if (!SESSION_ID.test(sessionId))
    throw invalidRequest('session_id must be 1 to 200 characters, without spaces, control characters and invisible ones');
  return sessionId;
}

/** Checks session metadata: an object, or nothing. */
export function acceptMetadata(value: JsonValue | undefined): JsonObject | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw invalidRequest('session.metadata must be an object');
  return value;
}

/** Checks the options of a send and freezes them for its turn; a broken output schema is refused before any spend. */
export function freezeOptions(model: string, provider: string | null, options: SendOptions, settings: HarnessSettings): TurnOptions {
  if (model.trim() === '') throw invalidRequest('model must not be empty');
  const output = options.output ?? { type: 'text' };
  const fault = contractFault(output);
  if (fault !== null) throw invalidRequest(`options.output.schema ${fault}`);
  return {
    model,
    provider,
    functions: normalizePolicy(options.functions, 'options.functions'),
    max_turns: options.max_turns ?? settings.default_max_turns,
    output,
    mode: options.mode ?? null,
    system_prompt: options.system_prompt ?? null,
    system_prompt_strategy: options.system_prompt_strategy ?? 'enrich',
    thinking_level: options.thinking_level ?? null,
    metadata: options.metadata ?? null,
    max_children: settings.max_children,
  };
}
