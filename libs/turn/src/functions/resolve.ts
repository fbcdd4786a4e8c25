import { type FunctionResolveRequest, type FunctionResolveResponse, HARNESS_CODES, HarnessError, type JsonValue } from '#libs/contracts';
import { capResult } from '../dispatch/capture.js';
import { turnEnded } from '../loop/ended.js';
import type { LoopPorts } from '../loop/ports.js';
import type { Answer, CallResult } from '../machine/decision.js';
import { decide } from '../machine/machine.js';
import { cleanContent } from '../model/text.js';
import { isLive, isTerminal } from '../record/record.js';
import { traceDecision } from '../tracing/ended.js';
import { invalidRequest } from './accept.js';

const MAX_RACES = 100;

/**
 * Settles a pending call from stored state alone, on any process: `deliver` stores the result, `execute` lets a held call
 * go on after the hook that held it. The first answer counts; `resolved` is false for any other.
 * Throws `harness/invalid_request` for another action.
 */
export function functionResolve(ports: LoopPorts, request: FunctionResolveRequest): Promise<FunctionResolveResponse> {
  const action = request.action ?? 'deliver';
  if (action !== 'deliver' && action !== 'execute')
    return Promise.reject(invalidRequest(`action must be "deliver" or "execute", not ${JSON.stringify(action)}`));
  const answer: Answer =
    action === 'execute'
      ? { kind: 'execute' }
      : { kind: 'deliver', result: capResult(resultOf(request), ports.settings.current().max_result_bytes) };
  return settleCall(ports, request, answer);
}

/** Settles a pending call of a turn, once. */
export async function settleCall(
  ports: LoopPorts,
  call: { session_id: string; turn_id: string; function_call_id: string },
  answer: Answer,
): Promise<FunctionResolveResponse> {
  for (let race = 0; race < MAX_RACES; race += 1) {
    const record = await ports.journal.load(call.session_id);
    if (!isLive(record) || record.turn_id !== call.turn_id) return { resolved: false, turn_resumed: false };
    const now = ports.clock.now();
    const decision = decide(record, { type: 'resolved', now, call_id: call.function_call_id, answer });
    if (decision.writes.length === 0) return { resolved: false, turn_resumed: false };
    if ((await ports.journal.commit(decision.writes, 'resolved')) === 'conflict') continue;
    traceDecision(ports.spans, record, decision, now, answer.kind === 'deliver' && answer.had_failure === true);
    if (isTerminal(decision.record.status)) await turnEnded(ports, decision.record);
    return { resolved: true, turn_resumed: decision.next.do === 'rest' && decision.next.outcome === 'queued' };
  }
  throw new HarnessError(HARNESS_CODES.state, `the turn of session ${call.session_id} changed too often to settle the call`, {
    retry: 'retry',
  });
}

/** The result that a resolver delivers; without content the details speak. */
function resultOf({ content, details, is_error }: FunctionResolveRequest): CallResult {
  const given: JsonValue = details ?? null;
  const blocks = cleanContent(content ?? []).filter((block) => block.type === 'text' || block.type === 'image');
  const text = given === null ? '(no output)' : typeof given === 'string' ? given : JSON.stringify(given);
  return {
    content: blocks.length > 0 ? blocks : [{ type: 'text', text: text.trim() === '' ? '(no output)' : text }],
    details: given,
    is_error: is_error === true,
  };
}
