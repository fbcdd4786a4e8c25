import { errorCode, errorMessage } from '#libs/contracts';
import type { LoopPorts } from '../loop/ports.js';
import type { PlannedCall } from '../machine/calls.js';
import type { TurnInput } from '../machine/decision.js';
import { syntheticResult } from '../machine/results.js';
import type { TurnRecord } from '../record/record.js';
import { prepareChild } from './prepare.js';

type Spawned = Omit<Extract<TurnInput, { type: 'call-spawned' }>, 'now' | 'plan' | 'waiting' | 'limits'>;
type Refused = Omit<Extract<TurnInput, { type: 'call-returned' }>, 'now' | 'plan' | 'waiting' | 'limits'>;

/** Carries out a model's call of `harness::spawn`: the child begins in the commit that makes the call pending; a refusal is its result. */
export async function prepareSpawn(ports: LoopPorts, record: TurnRecord, call: PlannedCall): Promise<Spawned | Refused> {
  try {
    const child = await prepareChild(ports, record, call.id, call.arguments);
    const { session_id, turn_id, writes, pending_timeout_ms } = child;
    return {
      type: 'call-spawned',
      call_id: call.id,
      child: { session_id, turn_id },
      writes,
      expires_at: ports.clock.now() + pending_timeout_ms,
    };
  } catch (error) {
    const code = errorCode(error) ?? 'harness/internal';
    return { type: 'call-returned', call_id: call.id, result: syntheticResult(code, call.function_id, errorMessage(error)) };
  }
}
