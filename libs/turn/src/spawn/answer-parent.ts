import { capResult } from '../dispatch/capture.js';
import { settleCall } from '../functions/resolve.js';
import type { LoopPorts } from '../loop/ports.js';
import type { ChildEndedEvent } from '../ports/journal.js';

/** Answers the call by which a parent started a child that has ended. Repeats do nothing: the call is settled once. */
export async function answerParent(ports: LoopPorts, { parent, result, had_failure }: ChildEndedEvent['payload']): Promise<void> {
  const kept = capResult(result, ports.settings.current().max_result_bytes);
  await settleCall(ports, parent, { kind: 'deliver', result: kept, ...(had_failure === true ? { had_failure } : {}) });
}
