import { HARNESS_CODES, HarnessError, type StopRequest, type StopResponse } from '#libs/contracts';
import { turnEnded } from '../loop/ended.js';
import type { TurnExecutor } from '../loop/executor.js';
import type { LoopPorts } from '../loop/ports.js';
import { decide } from '../machine/machine.js';
import type { StepQueue } from '../ports/queue.js';
import { isLive, type TurnRecord } from '../record/record.js';
import { traceDecision } from '../tracing/ended.js';

const MAX_RACES = 100;

/**
 * Stops a turn and its descendants. The requests are on disk before the answer, so that nothing of these turns begins after
 * it (invariant I12): a step that runs here or elsewhere ends by it, a turn that no process runs is ended here.
 * `stopping` is false when there is nothing to stop.
 */
export async function stop(ports: LoopPorts, executor: TurnExecutor, queue: StepQueue, request: StopRequest): Promise<StopResponse> {
  for (let race = 0; race < MAX_RACES; race += 1) {
    const record = await ports.journal.load(request.session_id);
    if (record === null || (request.turn_id != null && request.turn_id !== record.turn_id)) return { stopping: false };
    const isOpen = isLive(record);
    // A stop that got no further than this turn is carried on with by the next one.
    if (!isOpen && record.status !== 'cancelled') return { stopping: false };
    if (isOpen && !(await stopOne(ports, record, executor, queue))) continue;
    // After the commit no child is added: what the record names is all there is.
    const below = await Promise.all(
      record.children.map(({ session_id, turn_id }) => stop(ports, executor, queue, { session_id, turn_id })),
    );
    return { stopping: isOpen || below.some(({ stopping }) => stopping) };
  }
  throw new HarnessError(HARNESS_CODES.state, `session ${request.session_id} changed too often to be stopped`, { retry: 'retry' });
}

/** Stops one turn; false when its record changed in between. */
async function stopOne(ports: LoopPorts, record: TurnRecord, executor: TurnExecutor, queue: StepQueue): Promise<boolean> {
  if (!(await isRun(record, executor, queue))) return await endHere(ports, record, executor);
  if (!record.abort_requested) {
    const { writes } = decide(record, { type: 'stop-requested' });
    if ((await ports.journal.commit(writes, 'stop-requested')) === 'conflict') return false;
  }
  executor.abort(record.session_id);
  return true;
}

/** True when a live process runs the step and will end it by the request. */
async function isRun(record: TurnRecord, executor: TurnExecutor, queue: StepQueue): Promise<boolean> {
  if (record.status !== 'running') return false;
  return executor.isActive(record.session_id) || (await queue.ownerOf(record.session_id)) === 'other';
}

/** Ends a turn that is parked, waits in the queue, or lost its process. */
async function endHere(ports: LoopPorts, record: TurnRecord, executor: TurnExecutor): Promise<boolean> {
  const now = ports.clock.now();
  const decision = decide(record, { type: 'stopped', now, partial: null, returned: null });
  if ((await ports.journal.commit(decision.writes, 'turn-cancelled')) === 'conflict') return false;
  traceDecision(ports.spans, record, decision, now);
  executor.abort(record.session_id); // a step that was taken up just now has nothing left to do
  await turnEnded(ports, decision.record);
  return true;
}
