import type { FunctionTriggerRequest, FunctionTriggerResponse } from '#libs/contracts';
import { dispatch } from '../dispatch/dispatch.js';
import type { LoopPorts } from '../loop/ports.js';
import { planCalls } from '../machine/calls.js';
import { refusedResult, stoppedResult } from '../machine/results.js';
import { compilePolicy } from '../policy/policy.js';
import { isLive } from '../record/record.js';

/** Runs one call under the policy of the session's live turn and gives its captured result. Without a live turn it is denied. */
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
  if (planned === undefined || record === null || planned.refusal !== null) {
    const refusal = planned?.refusal ?? { code: 'policy_denied' as const, message: policy.refusal(base.function_id) ?? 'no turn is live' };
    return { ...base, ...refusedResult(base.function_id, refusal), duration_ms: 0 };
  }
  const outcome = await dispatch(ports.bus, record, planned, policy, {
    timeoutMs: dispatch_timeout_ms,
    maxResultBytes: max_result_bytes,
    signal,
  });
  const result = outcome.kind === 'result' ? outcome.result : stoppedResult(base.function_id, true);
  return { ...base, ...result, duration_ms: Math.max(0, clock.now() - startedAt) };
}
