import {
  HARNESS_CODES,
  HarnessError,
  type JsonValue,
  newCallId,
  newSessionId,
  newTurnId,
  type SpawnRequest,
  type SpawnResponse,
} from '#libs/contracts';
import type { TraceContext } from '#libs/iii';
import type { LoopPorts } from '../loop/ports.js';
import type { Write } from '../ports/journal.js';
import { isLive, type TurnRecord } from '../record/record.js';
import { type PreparedChild, prepareChild, prepareRoot } from '../spawn/prepare.js';
import { traceOf, traceparentOf } from '../tracing/ids.js';

const MAX_RACES = 100;

/**
 * Starts a child that nobody waits for: a call of `harness::spawn` from outside a turn. When the call comes from a function
 * that a model called (`metadata.agent`), the limits and the policy of that turn hold. Inside a turn the loop carries the
 * call out itself. Throws as `prepareChild` does.
 */
export async function spawn(
  ports: LoopPorts,
  request: SpawnRequest,
  metadata: JsonValue | undefined,
  trace: TraceContext = {},
): Promise<SpawnResponse> {
  for (let race = 0; race < MAX_RACES; race += 1) {
    const parent = await callerOf(ports, metadata);
    const { session_id, turn_id, writes } =
      parent === null
        ? await prepareRoot(ports, request, { session_id: newSessionId(), turn_id: newTurnId() }, trace)
        : await childOf(ports, parent, request, trace);
    if ((await ports.journal.commit(writes, 'spawn')) === 'committed') return { child_session_id: session_id, child_turn_id: turn_id };
  }
  throw new HarnessError(HARNESS_CODES.state, 'the session changed too often to start a turn in it', { retry: 'retry' });
}

/** A child that its parent's record names, as it names those of its own calls: so it counts, and a stop of the parent reaches it. */
async function childOf(ports: LoopPorts, parent: TurnRecord, request: SpawnRequest, trace: TraceContext): Promise<PreparedChild> {
  const callId = newCallId();
  const { traceparent = traceparentOf(traceOf(parent), traceOf(parent).span_id) } = trace;
  const child = await prepareChild(ports, parent, callId, request, traceparent);
  const children = [...parent.children, { function_call_id: callId, session_id: child.session_id, turn_id: child.turn_id }];
  const save: Write = {
    kind: 'save-record',
    record: { ...parent, version: parent.version + 1, children },
    expectedVersion: parent.version,
  };
  return { ...child, writes: [...child.writes, save] };
}

/** The live turn for which a function runs, by its provenance. */
async function callerOf(ports: LoopPorts, metadata: JsonValue | undefined): Promise<TurnRecord | null> {
  const agent = objectOf(objectOf(metadata)?.['agent']);
  if (agent === null) return null;
  const record = typeof agent['session_id'] === 'string' ? await ports.journal.load(agent['session_id']) : null;
  if (!isLive(record) || record.abort_requested || record.turn_id !== agent['turn_id'])
    throw new HarnessError(HARNESS_CODES.invalidRequest, 'the turn that this call was made for has ended');
  return record;
}

const objectOf = (value: JsonValue | undefined): { [key: string]: JsonValue } | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
