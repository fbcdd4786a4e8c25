import type { TurnStepPayload } from '#libs/contracts';
import { SqliteStepQueue } from '../turns/queue.js';
import type { StepJobs } from './step-jobs.js';

/** The step queue of a store on disk whose steps go through the queue of an engine. */
export class EngineStepQueue extends SqliteStepQueue {
  /** Undefined while steps are handed over in memory: the engine has no queue but ours. */
  jobs: StepJobs | undefined;

  override handOver(payload: TurnStepPayload, notBefore = 0): void {
    if (this.jobs === undefined || this.owner === null || notBefore > Date.now()) super.handOver(payload, notBefore);
    else this.jobs.send(payload, () => super.handOver(payload));
  }

  arrive(payload: TurnStepPayload): boolean {
    return this.jobs?.arrive(payload) ?? false;
  }
}
