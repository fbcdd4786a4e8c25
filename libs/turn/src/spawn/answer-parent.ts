import { capResult } from '../dispatch/capture.js';
import { settleCall } from '../functions/resolve.js';
import type { LoopPorts } from '../loop/ports.js';
import { isTerminal } from '../record/record.js';
import { childOutcome } from './outcome.js';

/** Answers the call by which a parent started a child that has ended. Repeats do nothing: the call is settled once. */
export async function answerParent(ports: LoopPorts, child: { session_id: string; turn_id: string }): Promise<void> {
  const record = await ports.journal.load(child.session_id);
  if (record === null || record.turn_id !== child.turn_id || record.parent === null || !isTerminal(record.status)) return;
  const result = capResult(childOutcome(record), ports.settings.current().max_result_bytes);
  await settleCall(ports, record.parent, { kind: 'deliver', result });
}
