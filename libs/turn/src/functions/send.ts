import { createHash } from 'node:crypto';
import {
  HARNESS_CODES, HarnessError, entryIds, newEntryId, newSessionId, newTurnId, textOf, type AgentMessage, type JsonObject, type JsonValue, type SendRequest, type SendResponse,
} from '#libs/contracts';
import type { LoopPorts } from '../loop/ports.js';
import { cleanContent, cut, userText } from '../model/text.js';
import { normalizePolicy } from '../policy/policy.js';
import type { RememberedSend, Write } from '../ports/journal.js';
import type { HarnessSettings } from '../ports/settings.js';
import { isLive, type ParkedMessage, type TurnOptions, type TurnRecord } from '../record/record.js';

/** How often a send begins again when another one wins the session. */
const MAX_RACES = 200;
const PREVIEW = 200;

/** What a send asks for, checked. */
interface Accepted {
  session_id: string;
  entry_id: string;
  message: AgentMessage;
  options: TurnOptions;
  title: string | undefined;
  metadata: JsonObject | undefined;
  key: string | null;
  digest: string;
}

/**
 * Stores a message and starts a turn for it, or adds it to the live one; answers once that is on disk. Two sends at once
 * exclude each other in the store, so that a session has one live turn and no message is left without a reply.
 * Throws `harness/invalid_request`, `harness/invalid_message_role`, `harness/idempotency_conflict` or `harness/storage`.
 */
export async function send(ports: LoopPorts, request: SendRequest): Promise<SendResponse> {
  const asked = accept(request, ports.settings.current(), ports.clock.now());
  for (let race = 0; race < MAX_RACES; race += 1) {
    const repeat = asked.key === null ? null : await ports.journal.recall(asked.key);
    if (repeat !== null) return repeated(repeat, asked);
    const answer = await attempt(ports, asked);
    if (answer !== null) return answer;
  }
  throw new HarnessError(HARNESS_CODES.state, `session ${asked.session_id} changed too often to take the message`, { retry: 'retry' });
}

/** One try; null when the session changed in between. */
async function attempt(ports: LoopPorts, asked: Accepted): Promise<SendResponse | null> {
  const { journal, clock, settings } = ports;
  const { session_id, entry_id, message } = asked;
  const now = clock.now();
  const live = await journal.load(session_id);
  const turnId = isLive(live) ? live.turn_id : newTurnId();
  const remember: Write[] = asked.key === null ? [] : [rememberKey(asked, turnId, now + settings.current().idem_ttl_secs * 1000)];
  if (isLive(live)) {
    const parked: ParkedMessage = { entry_id, message, options: asked.options, timestamp: now };
    const merge: Write[] =
      live.status === 'running'
        ? [{ kind: 'park-message', session_id, turn_id: turnId, parked }]
        : [
            { kind: 'check-record', session_id, version: live.version },
            { kind: 'append-entry', session_id, entry: { entry_id, timestamp: now, message } },
          ];
    const result = await journal.commit([...merge, ...remember], 'merge');
    return result === 'committed' ? { accepted: true, session_id, turn_id: turnId, merged: true } : null;
  }
  const record = seedRecord(asked, turnId, live, now);
  const result = await journal.commit([...seedWrites(record, asked, live, now), ...remember], 'send');
  if (result === 'conflict') return null;
  const { model, provider } = record.options;
  ports.feed.publish({ type: 'turn_started', session_id, turn_id: turnId, model, provider, timestamp: now });
  return { accepted: true, session_id, turn_id: turnId };
}

function seedRecord(asked: Accepted, turnId: string, before: TurnRecord | null, now: number): TurnRecord {
  return {
    format: 1,
    session_id: asked.session_id,
    turn_id: turnId,
    version: (before?.version ?? 0) + 1,
    claims: 0,
    status: 'running',
    step: 0,
    phase: 'generate',
    turn_count: 0,
    calls: [],
    call_count: 0,
    options: asked.options,
    depth: 0,
    parent: null,
    children: [],
    watermark: null,
    abort_requested: false,
    failures: 0,
    nudges: 0,
    result: null,
    result_error: null,
    reason: null,
    totals: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: null },
    started_at: now,
    ended_at: null,
  };
}

function seedWrites(record: TurnRecord, asked: Accepted, before: TurnRecord | null, now: number): Write[] {
  const { session_id, turn_id } = record;
  const { title, metadata } = asked;
  const preview = cut(textOf(asked.message.content), PREVIEW);
  return [
    { kind: 'ensure-session', session_id, ...(title === undefined ? {} : { title }), ...(metadata === undefined ? {} : { metadata }), timestamp: now },
    { kind: 'append-entry', session_id, entry: { entry_id: asked.entry_id, timestamp: now, message: asked.message } },
    { kind: 'save-record', record, expectedVersion: before?.version ?? null },
    { kind: 'set-status', session_id, status: 'working', timestamp: now },
    { kind: 'enqueue-step', payload: { session_id, turn_id, step: 0 } },
    {
      kind: 'emit',
      event: { type: 'harness::turn-started', payload: { session_id, turn_id, timestamp: now, depth: record.depth, ...(preview === '' ? {} : { message_preview: preview }) } },
    },
  ];
}

const rememberKey = (asked: Accepted, turnId: string, expiresAt: number): Write => ({
  kind: 'remember-key',
  key: asked.key ?? '',
  answer: { session_id: asked.session_id, turn_id: turnId, entry_id: asked.entry_id, digest: asked.digest },
  expires_at: expiresAt,
});

function repeated(found: RememberedSend, asked: Accepted): SendResponse {
  if (found.digest !== asked.digest) {
    throw new HarnessError(HARNESS_CODES.idempotencyConflict, `idempotency_key ${JSON.stringify(asked.key)} was used for another message; use a new key`);
  }
  return { accepted: true, session_id: found.session_id, turn_id: found.turn_id, deduplicated: true };
}

/** Checks what the schema cannot say, and freezes the options. */
function accept(request: SendRequest, settings: HarnessSettings, now: number): Accepted {
  const key = request.idempotency_key ?? null;
  if (key !== null && key.trim() === '') throw invalid('idempotency_key must not be empty');
  if (request.session_id != null && !/^[^\s\p{Cc}]{1,200}$/u.test(request.session_id)) {
    throw invalid('session_id must be 1 to 200 characters without spaces or control characters');
  }
  if (request.model.trim() === '') throw invalid('model must not be empty');
  const message = messageOf(request.message, now);
  const session = request.session ?? null;
  return {
    session_id: request.session_id ?? newSessionId(),
    entry_id: key === null ? newEntryId() : entryIds.idempotent(key),
    message,
    options: frozenOptions(request, settings),
    title: session?.title ?? undefined,
    metadata: metadataOf(session?.metadata),
    key,
    digest: createHash('sha256').update(JSON.stringify([request.session_id ?? null, message.role, message.content, request.model])).digest('hex'),
  };
}

const invalid = (detail: string): HarnessError => new HarnessError(HARNESS_CODES.invalidRequest, detail);

function messageOf(message: SendRequest['message'], now: number): AgentMessage {
  if (typeof message === 'string') {
    if (message.trim() === '') throw invalid('message must not be empty');
    return userText(message, now);
  }
  if (message.role !== 'user' && message.role !== 'custom') {
    throw new HarnessError(HARNESS_CODES.invalidMessageRole, `message.role must be "user" or "custom", not ${JSON.stringify(message.role)}`);
  }
  const foreign = message.content.findIndex((block) => block.type !== 'text' && block.type !== 'image');
  if (foreign >= 0) throw invalid(`message.content[${foreign}].type must be "text" or "image"`);
  const content = cleanContent(message.content);
  if (content.length === 0 && message.role === 'user') throw invalid('message.content must hold some text or an image');
  return { ...message, content };
}

function metadataOf(value: JsonValue | undefined): JsonObject | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid('session.metadata must be an object');
  return value;
}

function frozenOptions(request: SendRequest, settings: HarnessSettings): TurnOptions {
  const options = request.options ?? {};
  return {
    model: request.model,
    provider: request.provider ?? null,
    functions: normalizePolicy(options.functions, 'options.functions'),
    max_turns: options.max_turns ?? settings.default_max_turns,
    output: options.output ?? { type: 'text' },
    mode: options.mode ?? null,
    system_prompt: options.system_prompt ?? null,
    system_prompt_strategy: options.system_prompt_strategy ?? 'enrich',
    thinking_level: options.thinking_level ?? null,
    metadata: options.metadata ?? null,
    max_children: settings.max_children,
  };
}
