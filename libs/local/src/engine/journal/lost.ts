import { callsOf, type Entry, entryIds, errorCode, type FunctionCallBlock, type JsonObject, type SessionMeta } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import {
  decide,
  isLive,
  type Journal,
  type LoopPorts,
  limitsOf,
  resultWrite,
  type TurnRecord,
  unknownOutcome,
  type Write,
} from '#libs/turn';
import type { Log } from '../reach.js';
import type { QueuedStep } from './journal.js';

const CODE = 'harness.state_lost';
const MESSAGE =
  'The engine was killed and lost a part of this turn that it had answered for. What stands here is all that is known; calls may have run whose results ' +
  'are not here. Send a message to go on.';
/** Sessions that are read at once. */
const PAGE = 200;

export interface LostParts {
  ports: Pick<LoopPorts, 'journal' | 'transcript' | 'clock' | 'settings'>;
  bus: Pick<Bus, 'trigger'>;
  log: Log;
}

/**
 * Closes, with a notice, the turns of which an engine has lost what it had answered for: a transcript that is ahead of its record shows that, since a
 * commit writes the record first. To be called before any step runs. Returns the steps that may run.
 */
export async function closeLost(parts: LostParts, steps: readonly QueuedStep[]): Promise<QueuedStep[]> {
  const sound: QueuedStep[] = [];
  for (const step of steps) if (!(await closeIfAhead(parts, step.payload.session_id))) sound.push(step);
  await closeForgotten(parts);
  return sound;
}

async function closeIfAhead({ ports, log }: LostParts, session_id: string): Promise<boolean> {
  const record = await ports.journal.load(session_id);
  if (!isLive(record)) return true;
  const entries = (await ports.transcript.window(session_id)).filter((entry) => entry.origin?.['turn_id'] === record.turn_id);
  if (!isAhead(record, entries)) return false;
  const now = ports.clock.now();
  const failure = { code: CODE, message: MESSAGE, retryable: false };
  const decision = decide(record, { type: 'step-failed', now, failure, limits: limitsOf(ports.settings.current()) });
  await ports.journal.commit([...lostResults(record, entries, now), ...decision.writes], 'state-lost');
  log('error', 'a turn was closed: the engine lost a part of it that it had answered for', { session_id, turn_id: record.turn_id });
  return true;
}

/** True when the transcript holds what only a later record could have led to. */
export function isAhead({ turn_id, step, phase, calls }: TurnRecord, entries: readonly Entry[]): boolean {
  const ids = new Set(entries.map(({ id }) => id));
  if (ids.has(entryIds.assistant(turn_id, step + 1))) return true;
  if (phase === 'generate') return callsIn(entries.filter(({ id }) => id === entryIds.assistant(turn_id, step))).length > 0;
  return calls.some(({ id, state }) => state !== 'done' && ids.has(entryIds.result(turn_id, id)));
}

/** A result for each call that the record does not know of. */
function lostResults(record: TurnRecord, entries: readonly Entry[], now: number): Write[] {
  const ids = new Set(entries.map(({ id }) => id));
  const known = new Set(record.calls.map(({ id }) => id));
  return callsIn(entries)
    .filter(({ id }) => !known.has(id) && !ids.has(entryIds.result(record.turn_id, id)))
    .map((call) => resultWrite(record, call.id, targetOf(call), unknownOutcome(targetOf(call)), now));
}

const callsIn = (entries: readonly Entry[]): FunctionCallBlock[] =>
  entries.flatMap((entry) => (entry.kind === 'message' && entry.message.role === 'assistant' ? callsOf(entry.message.content) : []));

/** What a call is for, behind `agent_trigger`. */
function targetOf({ function_id, arguments: given }: FunctionCallBlock): string {
  const target = typeof given === 'object' && given !== null && !Array.isArray(given) ? given['function'] : undefined;
  return function_id === 'agent_trigger' && typeof target === 'string' ? target : function_id;
}

/** Sessions that are said to be worked on in a turn of ours that is nowhere: its record is lost as a whole. */
async function closeForgotten({ ports, bus, log }: LostParts): Promise<void> {
  for (const { session_id } of await working(bus)) {
    const record = await recordIn(ports.journal, session_id);
    if (record === 'damaged' || isLive(record)) continue;
    const last = (await ports.transcript.window(session_id)).findLast((entry) => entry.kind === 'message');
    const isOurs = record !== null || last?.id.startsWith('e_idem_') === true || typeof last?.origin?.['turn_id'] === 'string';
    if (!isOurs) continue; // whoever works there may be another agent
    const notice = { custom_type: 'error', data: { code: CODE, message: MESSAGE, retryable: false } satisfies JsonObject };
    await bus.trigger({ function_id: 'session::append', payload: { session_id, custom: notice } });
    await bus.trigger({ function_id: 'session::set-status', payload: { session_id, status: 'error', reason: CODE } });
    log('error', 'a session was closed: the engine lost its turn, which it had answered for', { session_id });
  }
}

/** The record of a session; one that is damaged has been reported when it was read first. */
async function recordIn(journal: Pick<Journal, 'load'>, session_id: string): Promise<TurnRecord | null | 'damaged'> {
  return await journal.load(session_id).catch((error: unknown) => {
    if (errorCode(error) === 'harness/damaged_record') return 'damaged';
    throw error;
  });
}

async function working(bus: LostParts['bus']): Promise<SessionMeta[]> {
  const found: SessionMeta[] = [];
  let cursor: string | null = null;
  do {
    const payload: object = { status: 'working', limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page: { sessions: SessionMeta[]; next_cursor?: string | null } = await bus.trigger({ function_id: 'session::list', payload });
    found.push(...page.sessions);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null);
  return found;
}
