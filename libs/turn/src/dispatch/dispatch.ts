import { BUS_CODES, errorCode, errorMessage, type JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import type { PlannedCall } from '../machine/calls.js';
import type { CallResult } from '../machine/decision.js';
import { refusedResult, syntheticResult } from '../machine/results.js';
import { wellFormed } from '../model/text.js';
import { reachesRecords } from '../policy/never.js';
import type { DispatchPolicy } from '../policy/policy.js';
import type { TurnRecord } from '../record/record.js';
import { fitArguments } from './arguments.js';
import { capError, capResult, captureResult, toJson } from './capture.js';
import { filterDiscovery } from './discovery.js';

/** Characters of an error that are kept. */
const MAX_ERROR = 20_000;

const RECORDS_CLOSED = {
  code: 'policy_denied',
  message: 'It was not called: the records of the harness are never open to a model.',
} as const;

export interface DispatchOptions {
  timeoutMs: number;
  maxResultBytes: number;
  signal: AbortSignal;
}

/** How a dispatch ended. `stopped`: the turn was stopped while the target ran. */
export type DispatchOutcome = { kind: 'result'; result: CallResult } | { kind: 'stopped' };

/**
 * Calls the target of one call, once, and captures what comes of it. Never throws: an error of the target is a result
 * that the model sees. The policy has been asked before.
 */
export async function dispatch(
  bus: Bus,
  record: TurnRecord,
  call: PlannedCall,
  policy: DispatchPolicy,
  options: DispatchOptions,
): Promise<DispatchOutcome> {
  const id = call.function_id;
  try {
    const payload = await fitted(bus, id, call.arguments);
    if (reachesRecords(id, payload)) return { kind: 'result', result: refusedResult(id, RECORDS_CLOSED) };
    const value = await bus.trigger({
      function_id: id,
      payload: structuredClone(payload),
      timeoutMs: options.timeoutMs,
      signal: options.signal,
      metadata: provenance(record),
    });
    const seen = id.startsWith('engine::functions::') ? filterDiscovery(id, toJson(value), policy) : value;
    return { kind: 'result', result: capResult(captureResult(seen), options.maxResultBytes) };
  } catch (error) {
    if (options.signal.aborted) return { kind: 'stopped' };
    return { kind: 'result', result: capResult(failedResult(id, error, options.timeoutMs), options.maxResultBytes) };
  }
}

/** Says for whom a call is made; nested calls inherit it. */
export const provenance = (record: TurnRecord): JsonValue => ({
  agent: { session_id: record.session_id, turn_id: record.turn_id, depth: record.depth },
});

/** Only text arguments can need fitting, so only then the target's schema is looked up. */
async function fitted(bus: Bus, functionId: string, args: JsonValue): Promise<JsonValue> {
  if (typeof args === 'object' && args !== null) return args;
  const info = await bus
    .trigger<{ request_schema?: unknown } | null>({ function_id: 'engine::functions::info', payload: { function_id: functionId } })
    .catch(() => null);
  return fitArguments(args, info?.request_schema);
}

function failedResult(id: string, error: unknown, timeoutMs: number): CallResult {
  const code = errorCode(error) ?? 'function_failed';
  if (code === BUS_CODES.functionNotFound) {
    return syntheticResult('function_not_found', id, `There is no function ${id}. Look for the right one with engine::functions::list.`);
  }
  if (code === BUS_CODES.connectionLost)
    return syntheticResult(
      'outcome_unknown',
      id,
      `The outcome of ${id} is unknown: the connection to the engine was lost while it ran. It may have run.`,
    );
  if (code === BUS_CODES.stopped) return syntheticResult('function_unavailable', id, `${id} went away while it ran; it may have run.`);
  if (code === BUS_CODES.timeout) return syntheticResult('timeout', id, `${id} gave no result within ${timeoutMs} ms; it may still run.`);
  const message = capError(wellFormed(errorMessage(error)).trim() || 'the function failed without a message', MAX_ERROR);
  return { content: [{ type: 'text', text: message }], details: { error: { code, message } }, is_error: true };
}
