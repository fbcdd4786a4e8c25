import { capResult } from '../dispatch/capture.js';
import { settleCall } from '../functions/resolve.js';
import type { LoopPorts } from '../loop/ports.js';
import type { ChildEndedEvent } from '../ports/journal.js';

/** Answers the call by which a parent started a child that has ended. Repeats do nothing: the call is settled once. */
export async function answerParent(ports: LoopPorts, { parent, result }: ChildEndedEvent['payload']): Promise<void> {
  await settleCall(ports, parent, { kind: 'deliver', result: capResult(result, ports.settings.current().max_result_bytes) });
}
