import { errorMessage, type TurnStepPayload } from '#libs/contracts';
import type { SdkBus } from '#libs/iii';
import type { Log } from './reach.js';
import { TURN_QUEUE } from './turn-queue.js';

/** How long a job may take to come before its step is begun without it, in ms; and how often that is looked at. */
const OVERDUE_MS = 5_000;
const LOOK_MS = 1_000;

const keyOf = ({ session_id, turn_id, step }: TurnStepPayload): string => JSON.stringify([session_id, turn_id, step]);

/**
 * Sends steps through the queue of the engine. A job only wakes: what is due stands in the store. So a job that the engine loses
 * costs a few seconds and no step, and one that comes twice, or late, begins nothing.
 */
export class StepJobs {
  private readonly waiting = new Map<string, { begin: () => void; since: number }>();
  private readonly timer: NodeJS.Timeout;
  private readonly leave: () => void;
  private alone = false;

  constructor(
    private readonly bus: SdkBus,
    private readonly log: Log,
  ) {
    this.timer = setInterval(() => this.beginThose((since) => Date.now() - since >= OVERDUE_MS), LOOK_MS).unref();
    this.leave = bus.connection.onBack(() => this.beginThose(() => true));
  }

  /** Queues a step; `begin` is called once, when its job comes, or when it is clear that none will. */
  send(step: TurnStepPayload, begin: () => void): void {
    const key = keyOf(step);
    this.waiting.set(key, { begin, since: Date.now() });
    this.bus.trigger({ function_id: 'harness::turn', payload: step, action: { type: 'enqueue', queue: TURN_QUEUE } }).then(
      () => {
        this.alone = false;
      },
      (error: unknown) => {
        if (!this.alone)
          this.log('warn', 'the queue of the engine takes no steps: they are begun without it', { error: errorMessage(error) });
        this.alone = true;
        this.arrive(step);
      },
    );
  }

  /** A job has come; false when its step is not waited for. */
  arrive(step: TurnStepPayload): boolean {
    const key = keyOf(step);
    const found = this.waiting.get(key);
    this.waiting.delete(key);
    found?.begin();
    return found !== undefined;
  }

  close(): void {
    clearInterval(this.timer);
    this.leave();
    this.waiting.clear();
  }

  private beginThose(isDue: (since: number) => boolean): void {
    for (const [key, { begin, since }] of [...this.waiting]) {
      if (!isDue(since)) continue;
      this.waiting.delete(key);
      begin();
    }
  }
}
