import type { FunctionTriggerRequest, FunctionTriggerResponse } from '#libs/contracts';
import { dispatch } from '../dispatch/dispatch.js';
import { HookPoints } from '../loop/hook-points.js';
import type { LoopPorts } from '../loop/ports.js';
import { planCalls } from '../machine/calls.js';
import type { CallResult } from '../machine/decision.js';
import { hookDenied, refusedResult, stoppedResult } from '../machine/results.js';
import { compilePolicy } from '../policy/policy.js';
import { isLive } from '../record/record.js';
import { resultError } from '../tracing/ended.js';
import { toolSpan } from '../tracing/genai.js';
import { RunTrace } from '../tracing/run-trace.js';

/**
 * Runs one call under the policy of the session's live turn, between the hooks of its points, and gives its captured result. Without a
 * live turn it is denied. A call that a hook holds is `pending` and nothing more: it is no call of the turn, so nobody resolves it.
 */
export async function functionTrigger(
  ports: LoopPorts,
  request: FunctionTriggerRequest,
  signal: AbortSignal,
): Promise<FunctionTriggerResponse> {
  const { settings, journal, clock } = ports;
  const loaded = await journal.load(request.session_id);
  const record = isLive(loaded) ? loaded : null;
  const { call } = request;
  const { lift_never, dispatch_timeout_ms, max_result_bytes } = settings.current();
  const policy = compilePolicy(record?.options.functions ?? null, lift_never);
  const message = {
    role: 'assistant',
    content: [{ type: 'function_call', ...call }],
    model: '',
    provider: '',
    stop_reason: 'function_call',
    timestamp: 0,
  } as const;
  const [planned] = planCalls(
    { ...message, content: [...message.content] },
    { refusalOf: (id) => policy.refusal(id), isHooked: () => false },
  );
  const startedAt = clock.now();
  const base = { function_call_id: call.id, function_id: planned?.function_id ?? call.function_id };
  const answer = (result: CallResult): FunctionTriggerResponse => ({
    ...base,
    ...result,
    duration_ms: Math.max(0, clock.now() - startedAt),
  });
  if (planned === undefined || record === null || planned.refusal !== null) {
    const refusal = planned?.refusal ?? { code: 'policy_denied' as const, message: policy.refusal(base.function_id) ?? 'no turn is live' };
    return answer(refusedResult(base.function_id, refusal));
  }
  const { name, attributes } = toolSpan(planned.function_id, call.id);
  const trace = new RunTrace(ports, record, { name, attributes });
  const ended = (result: CallResult): FunctionTriggerResponse => {
    trace.end(resultError(result));
    return answer(result);
  };
  const hooks = new HookPoints(ports, signal, trace);
  const verdict = await hooks.preTrigger(record, planned, null);
  if (verdict.kind === 'deny') return ended(hookDenied(planned.function_id, verdict.by, verdict.reason));
  if (verdict.kind === 'hold') return { ...base, pending: true, pending_timeout_ms: Math.max(0, verdict.expires_at - clock.now()) };
  if (signal.aborted) return ended(stoppedResult(base.function_id, false));
  const screened = verdict.arguments === undefined ? planned : { ...planned, arguments: verdict.arguments };
  const outcome = await dispatch(trace.bus, record, screened, policy, {
    timeoutMs: dispatch_timeout_ms,
    maxResultBytes: max_result_bytes,
    signal,
  });
  const seen = outcome.kind === 'result' ? await hooks.postTrigger(record, screened, outcome.result) : null;
  return ended(seen?.result ?? stoppedResult(base.function_id, true));
}
