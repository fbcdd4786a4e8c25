import {
  entryIds,
  HARNESS_CODES,
  HarnessError,
  harnessFunctions,
  type JsonObject,
  type ParentRef,
  type SessionMeta,
  type SpawnRequest,
} from '#libs/contracts';
import { type TraceContext, violation } from '#libs/iii';
import { acceptMessage, acceptSessionId, freezeOptions, invalidRequest } from '../functions/accept.js';
import { type Seed, seedWrites } from '../functions/seed.js';
import type { LoopPorts } from '../loop/ports.js';
import { IntersectionTooLarge, intersectGlobs } from '../policy/intersect.js';
import type { Write } from '../ports/journal.js';
import type { HarnessSettings } from '../ports/settings.js';
import { isLive, type TurnOptions, type TurnRecord } from '../record/record.js';
import { callSpanId, traceOf, traceparentOf } from '../tracing/ids.js';
import { childIds } from './ids.js';

/** A child that is ready to begin. */
export interface PreparedChild {
  session_id: string;
  turn_id: string;
  writes: Write[];
  pending_timeout_ms: number;
}

/**
 * Prepares the child of a spawn call, as a part of that call's span unless told of which. Throws `harness/invalid_request`, `harness/spawn_depth_exceeded` or
 * `harness/spawn_fanout_exceeded`; nothing is written here.
 */
export async function prepareChild(
  ports: LoopPorts,
  parent: TurnRecord,
  callId: string,
  payload: unknown,
  traceparent = traceparentOf(traceOf(parent), callSpanId(parent.turn_id, callId)),
): Promise<PreparedChild> {
  const settings = ports.settings.current();
  const request = checked(payload);
  if (parent.depth + 1 > settings.max_depth) {
    throw new HarnessError(HARNESS_CODES.spawnDepthExceeded, `sub-agents may nest ${settings.max_depth} deep; do the task yourself`);
  }
  if (parent.children.length >= parent.options.max_children) {
    throw new HarnessError(
      HARNESS_CODES.spawnFanoutExceeded,
      `this turn has started its ${parent.options.max_children} sub-agents; do the rest yourself`,
    );
  }
  const ids = childIds(parent.turn_id, callId);
  const link: ParentRef = { session_id: parent.session_id, turn_id: parent.turn_id, function_call_id: callId };
  const options = childOptions(request, parent, settings);
  const seed = await seedOf(ports, request, { ids, link, options, depth: parent.depth + 1, traceparent });
  return {
    session_id: seed.session_id,
    turn_id: seed.turn_id,
    writes: seedWrites(seed),
    pending_timeout_ms: request.options?.pending_timeout_ms ?? settings.default_pending_timeout_ms,
  };
}

/** Prepares a child that nobody waits for: `harness::spawn` called from outside a turn. */
export async function prepareRoot(
  ports: LoopPorts,
  request: SpawnRequest,
  ids: { session_id: string; turn_id: string },
  { traceparent }: TraceContext,
): Promise<PreparedChild> {
  const settings = ports.settings.current();
  const model = request.model ?? settings.default_model;
  if (model === null || model === undefined) throw invalidRequest('model is missing, and the configuration has no default_model');
  const options = freezeOptions(
    model,
    request.provider ?? settings.default_provider,
    { functions: settings.default_functions, ...asSendOptions(request) },
    settings,
  );
  const seed = await seedOf(ports, request, {
    ids,
    link: null,
    options: { ...options, max_children: request.options?.max_children ?? settings.max_children },
    depth: 0,
    traceparent,
  });
  return {
    session_id: seed.session_id,
    turn_id: seed.turn_id,
    writes: seedWrites(seed),
    pending_timeout_ms: settings.default_pending_timeout_ms,
  };
}

interface ChildPlan {
  ids: { session_id: string; turn_id: string };
  link: ParentRef | null;
  options: TurnOptions;
  depth: number;
  traceparent: string | undefined;
}

async function seedOf(ports: LoopPorts, request: SpawnRequest, { ids, link, options, depth, traceparent }: ChildPlan): Promise<Seed> {
  const now = ports.clock.now();
  const sessionId = request.session_id == null ? ids.session_id : acceptSessionId(request.session_id);
  const before = await ports.journal.load(sessionId);
  if (isLive(before) && before.turn_id !== ids.turn_id) throw invalidRequest(`session_id: session ${sessionId} has a turn under way`);
  if (link !== null && request.session_id != null) await checkKinship(ports, sessionId, link.session_id);
  const message = acceptMessage(request.task, 'task', now);
  const metadata: JsonObject = {
    ...(link === null ? {} : { parent_session_id: link.session_id, parent_turn_id: link.turn_id, function_call_id: link.function_call_id }),
    depth,
  };
  return {
    session_id: sessionId,
    turn_id: ids.turn_id,
    options,
    before,
    depth,
    parent: link,
    metadata,
    traceparent,
    now,
    messages: [{ entry_id: entryIds.idempotent(`task_${ids.turn_id}`), message, timestamp: now }],
  };
}

/** A turn may spawn only into sessions of its own: its children, and forks of its conversation. */
async function checkKinship(ports: LoopPorts, sessionId: string, parentId: string): Promise<void> {
  const found = await ports.bus.trigger<{ meta: SessionMeta } | null>({ function_id: 'session::get', payload: { session_id: sessionId } });
  if (found === null) return;
  const isOwn = found.meta.metadata?.['parent_session_id'] === parentId || found.meta.forked_from === parentId;
  if (!isOwn) throw invalidRequest(`session_id: session ${sessionId} is neither a child nor a fork of this conversation`);
}

function checked(payload: unknown): SpawnRequest {
  const wrong = violation(harnessFunctions['harness::spawn'].request, payload);
  if (wrong !== null) throw invalidRequest(wrong);
  return payload as SpawnRequest;
}

const asSendOptions = (request: SpawnRequest): Omit<NonNullable<SpawnRequest['options']>, 'max_children' | 'pending_timeout_ms'> => {
  const { max_children: _children, pending_timeout_ms: _timeout, ...options } = request.options ?? {};
  return options.functions == null ? (({ functions: _functions, ...rest }) => rest)(options) : options;
};

/** The child's options: what it asks for, never more than its parent has (invariant I7). */
function childOptions(request: SpawnRequest, parent: TurnRecord, settings: HarnessSettings): TurnOptions {
  const model = request.model ?? parent.options.model;
  const provider = request.provider ?? (request.model == null ? parent.options.provider : null);
  const asked = freezeOptions(model, provider, asSendOptions(request), settings);
  const remaining = parent.options.max_turns - parent.turn_count;
  return {
    ...asked,
    functions: narrow(parent.options.functions, asked.functions),
    max_turns: Math.max(1, Math.min(request.options?.max_turns ?? remaining, remaining)),
    thinking_level: asked.thinking_level ?? parent.options.thinking_level,
    metadata: parent.options.metadata,
    max_children: Math.min(request.options?.max_children ?? parent.options.max_children, settings.max_children),
  };
}

/** The intersection of two policies; a child that asks for none has its parent's. Throws `harness/invalid_request` when it cannot be written down. */
export function narrow(parent: TurnOptions['functions'], child: TurnOptions['functions']): TurnOptions['functions'] {
  if (parent === null || child === null) return parent;
  try {
    return { allow: intersectGlobs(parent.allow, child.allow), deny: [...new Set([...parent.deny, ...child.deny])], expose: child.expose };
  } catch (error) {
    if (error instanceof IntersectionTooLarge) throw invalidRequest(`options.functions: ${error.message}`);
    throw error;
  }
}
