import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  type AgentMessage,
  entryIds,
  HARNESS_CODES,
  HarnessError,
  type JsonObject,
  newEntryId,
  newSessionId,
  newTurnId,
  type SendRequest,
  type SendResponse,
} from '#libs/contracts';
import type { TraceContext } from '#libs/iii';
import type { Clock, Feed, HarnessSettings, Journal, RememberedSend, SettingsSource, Transcript, Write } from '../ports/index.js';
import { isLive, type ParkedMessage, type TurnOptions, type TurnRecord } from '../record/record.js';
import { acceptMessage, acceptMetadata, acceptSessionId, freezeOptions, invalidRequest } from './accept.js';
import { seedWrites, takeParked } from './seed.js';

/** How often a send begins again when another one wins the session. */
const MAX_RACES = 200;

/** What a send works with. */
export interface SendPorts {
  journal: Pick<Journal, 'load' | 'parked' | 'recall' | 'commit'>;
  transcript: Pick<Transcript, 'entry'>;
  settings: SettingsSource;
  feed: Pick<Feed, 'publish'>;
  clock: Clock;
}

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
  traceparent: string | undefined;
}

/**
 * Stores a message and starts a turn for it, or adds it to the live one; answers once that is on disk. Two sends at once
 * exclude each other in the store, so that a session has one live turn and no message is left without a reply. A turn that it
 * starts is part of `trace`; one that is under way stays in its own.
 * Throws `harness/invalid_request`, `harness/invalid_message_role`, `harness/idempotency_conflict` or `harness/storage`.
 */
export async function send(ports: SendPorts, request: SendRequest, trace: TraceContext = {}): Promise<SendResponse> {
  const asked = { ...accept(request, ports.settings.current(), ports.clock.now()), traceparent: trace.traceparent };
  for (let race = 0; race < MAX_RACES; race += 1) {
    const repeat = asked.key === null ? null : await ports.journal.recall(asked.key);
    if (repeat !== null) return repeated(repeat, asked);
    const answer = await attempt(ports, { ...asked, entry_id: await entryIdFor(ports, asked) });
    if (answer !== null) return answer;
  }
  throw new HarnessError(HARNESS_CODES.state, `session ${asked.session_id} changed too often to take the message`, { retry: 'retry' });
}

/**
 * The entry id for a message whose key is not known. When the session has an entry under it all the same, that is older than keys live, and what
 * comes now is another message; or a store has lost the key, and what comes now is that message again.
 */
async function entryIdFor({ journal, transcript, settings, clock }: SendPorts, asked: Accepted): Promise<string> {
  const { key, session_id, entry_id } = asked;
  if (key === null) return entry_id;
  const parked = (await journal.parked(session_id)).find((waiting) => waiting.entry_id === entry_id);
  const found = parked ?? (await transcript.entry(session_id, entry_id));
  if (found === null) return entry_id;
  if (clock.now() - found.timestamp >= settings.current().idem_ttl_secs * 1000) return newEntryId();
  const content = 'message' in found ? found.message.content : null;
  if (!isDeepStrictEqual(content, asked.message.content)) throw usedOtherwise(key);
  return entry_id;
}

/** One try; null when the session changed in between. */
async function attempt(ports: SendPorts, asked: Accepted): Promise<SendResponse | null> {
  const { journal, clock, settings } = ports;
  const { session_id } = asked;
  const now = clock.now();
  const live = await journal.load(session_id);
  const turnId = isLive(live) ? live.turn_id : newTurnId();
  const remember: Write[] = asked.key === null ? [] : [rememberKey(asked, turnId, now + settings.current().idem_ttl_secs * 1000)];
  if (isLive(live)) {
    const left = live.status === 'running' ? [] : await journal.parked(session_id);
    const result = await journal.commit([...mergeWrites(live, asked, left, now), ...remember], 'merge');
    return result === 'committed' ? { accepted: true, session_id, turn_id: turnId, merged: true } : null;
  }
  const { options, entry_id, message, title, metadata, traceparent } = asked;
  const left = await journal.parked(session_id);
  const messages = [...left, { entry_id, message, timestamp: now }];
  const seed = {
    session_id,
    turn_id: turnId,
    options,
    before: live,
    depth: live?.depth ?? 0,
    parent: null,
    messages,
    title,
    metadata,
    traceparent,
    now,
  };
  if ((await journal.commit([...seedWrites(seed), ...takeParked(session_id, left), ...remember], 'send')) === 'conflict') return null;
  ports.feed.publish({
    type: 'turn_started',
    session_id,
    turn_id: turnId,
    model: options.model,
    provider: options.provider,
    timestamp: now,
  });
  return { accepted: true, session_id, turn_id: turnId };
}

/** True for a turn that waits for calls after its last generation: a message in its transcript would stay without an answer. */
const isSpent = (live: TurnRecord): boolean => live.status === 'awaiting_functions' && live.turn_count >= live.options.max_turns;

/**
 * A running turn takes a message up at its next step, a spent one leaves it to the turn after it; one that waits for calls
 * has it in its transcript at once, after those that came before (`left`).
 */
function mergeWrites(live: TurnRecord, asked: Accepted, left: readonly ParkedMessage[], now: number): Write[] {
  const { session_id, entry_id, message, options } = asked;
  const park = { kind: 'park-message', session_id, turn_id: live.turn_id, parked: { entry_id, message, options, timestamp: now } } as const;
  if (live.status === 'running') return [park];
  if (isSpent(live)) return [{ ...park, pending: true }];
  return [
    { kind: 'check-record', session_id, version: live.version },
    ...[...left, { entry_id, message, timestamp: now }].map(
      (m): Write => ({ kind: 'append-entry', session_id, entry: { entry_id: m.entry_id, message: m.message, timestamp: m.timestamp } }),
    ),
    ...takeParked(session_id, left),
  ];
}

const rememberKey = (asked: Accepted, turnId: string, expiresAt: number): Write => ({
  kind: 'remember-key',
  key: asked.key ?? '',
  answer: { session_id: asked.session_id, turn_id: turnId, entry_id: asked.entry_id, digest: asked.digest },
  expires_at: expiresAt,
});

const usedOtherwise = (key: string | null): HarnessError =>
  new HarnessError(HARNESS_CODES.idempotencyConflict, `idempotency_key ${JSON.stringify(key)} was used for another message; use a new key`);

function repeated(found: RememberedSend, asked: Accepted): SendResponse {
  if (found.digest !== asked.digest) throw usedOtherwise(asked.key);
  return { accepted: true, session_id: found.session_id, turn_id: found.turn_id, deduplicated: true };
}

/** Checks what the schema cannot say, and freezes the options. */
function accept(request: SendRequest, settings: HarnessSettings, now: number): Omit<Accepted, 'traceparent'> {
  const key = request.idempotency_key ?? null;
  if (key !== null && key.trim() === '') throw invalidRequest('idempotency_key must not be empty');
  const message = acceptMessage(request.message, 'message', now);
  return {
    session_id: request.session_id == null ? newSessionId() : acceptSessionId(request.session_id),
    entry_id: key === null ? newEntryId() : entryIds.idempotent(key),
    message,
    options: freezeOptions(request.model, request.provider ?? null, request.options ?? {}, settings),
    title: request.session?.title ?? undefined,
    metadata: acceptMetadata(request.session?.metadata),
    key,
    digest: createHash('sha256')
      .update(JSON.stringify([request.session_id ?? null, message.role, message.content, request.model]))
      .digest('hex'),
  };
}
