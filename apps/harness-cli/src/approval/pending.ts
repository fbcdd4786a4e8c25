import { entryIds, errorCode, type FunctionResultMessage, type JsonObject, type JsonValue, type SessionMeta } from '#libs/contracts';
import type { Bus } from '#libs/iii';

/** A call that waits for a person, as `approval::list-pending` tells of it. Times are ms since the epoch. */
export interface PendingCall {
  session_id: string;
  turn_id: string;
  function_call_id: string;
  function_id: string;
  arguments_excerpt?: JsonValue;
  depth?: number;
  pending_at: number;
  expires_at: number;
  session_title?: string | null;
  session_metadata?: JsonObject | null;
}

/** How a call that waited came to its end. `going on`: it was let pass, or its result is not there yet. */
export interface Settlement {
  outcome: 'going on' | 'denied' | 'timed out' | 'answered';
  reason?: string;
}

/** The calls that wait for a person, the oldest first; null where there is no approval worker. */
export async function listPending(bus: Bus, sessionId?: string): Promise<PendingCall[] | null> {
  const all: PendingCall[] = [];
  let cursor: string | null = null;
  try {
    do {
      const page: { pending: PendingCall[]; next_cursor?: string | null } = await bus.trigger({
        function_id: 'approval::list-pending',
        payload: { limit: 500, ...(sessionId === undefined ? {} : { session_id: sessionId }), ...(cursor === null ? {} : { cursor }) },
      });
      all.push(...page.pending);
      cursor = page.next_cursor ?? null;
    } while (cursor !== null);
  } catch (error) {
    if (errorCode(error) === 'function_not_found' || /function_not_found/.test(String(error))) return null;
    throw error;
  }
  return all;
}

/** What a pending call would be called with, as far as it may be shown; its excerpt where the worker tells no more. */
export async function argumentsOf(bus: Bus, call: PendingCall): Promise<JsonValue> {
  const { session_id, function_call_id } = call;
  const found = await bus.trigger<{ arguments?: JsonValue } | null>({
    function_id: 'approval::get-pending',
    payload: { session_id, function_call_id },
  });
  return found?.arguments ?? call.arguments_excerpt ?? null;
}

/** A decision about a pending call; false when it does not wait any more. */
export async function decide(
  bus: Bus,
  call: Pick<PendingCall, 'session_id' | 'function_call_id'>,
  decision: { decision: 'allow'; always: boolean } | { decision: 'deny'; reason: string | null },
): Promise<{ resolved: boolean; turn_resumed?: boolean | null }> {
  return await bus.trigger({
    function_id: 'approval::resolve',
    payload: {
      session_id: call.session_id,
      function_call_id: call.function_call_id,
      decision: decision.decision,
      ...(decision.decision === 'allow' && decision.always ? { grant_scope: 'session' } : {}),
      ...(decision.decision === 'deny' && decision.reason !== null ? { reason: decision.reason } : {}),
    },
  });
}

/** How a call that waits no more was settled, from what is stored of it. */
export async function settlementOf(bus: Bus, call: PendingCall): Promise<Settlement> {
  const found = await bus.trigger<{ entry: { message?: FunctionResultMessage } } | null>({
    function_id: 'session::get-message',
    payload: { session_id: call.session_id, entry_id: entryIds.result(call.turn_id, call.function_call_id) },
  });
  const details = found?.entry.message?.details;
  if (found == null) return { outcome: 'going on' };
  const said = typeof details === 'object' && details !== null && !Array.isArray(details) ? details : {};
  const reason = typeof said['reason'] === 'string' ? { reason: said['reason'] } : {};
  if (said['error'] === 'approval_denied') return { outcome: 'denied', ...reason };
  return { outcome: said['error'] === 'pending_timeout' ? 'timed out' : 'answered' };
}

/** Tells which sessions belong to the tree of one: itself, and the sub-agents below it. */
export class SessionTree {
  private readonly known = new Map<string, boolean>();

  constructor(
    private readonly bus: Bus,
    root: string,
  ) {
    this.known.set(root, true);
  }

  async has(sessionId: string, metadata?: JsonObject | null): Promise<boolean> {
    const known = this.known.get(sessionId);
    if (known !== undefined) return known;
    const linked = metadata ?? (await this.metadataOf(sessionId));
    const parent = linked?.['parent_session_id'];
    this.known.set(sessionId, false); // also ends a circle of links
    const belongs = typeof parent === 'string' && (await this.has(parent));
    this.known.set(sessionId, belongs);
    return belongs;
  }

  private async metadataOf(sessionId: string): Promise<JsonObject | undefined> {
    const found = await this.bus.trigger<{ meta: SessionMeta } | null>({
      function_id: 'session::get',
      payload: { session_id: sessionId },
    });
    return found?.meta.metadata;
  }
}
