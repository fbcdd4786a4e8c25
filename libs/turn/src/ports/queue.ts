import type { TurnStepPayload } from '#libs/contracts';

/** Runs one queued step. Its writes take the step off the queue; when it throws, the step stays queued. */
export type StepHandler = (payload: TurnStepPayload) => Promise<void>;

/** `none`: no step is queued (no live turn, or parked), or no process has taken it yet. */
export type StepOwner = 'self' | 'other' | 'gone' | 'none';

/** The queue of turn steps: in order within a session, side by side across sessions. Steps are put in by the journal. */
export interface StepQueue {
  /**
   * Starts running steps. `scope` says which: `all` (also what other processes left behind) or `own` (only what this
   * process queues or adopts).
   */
  start(handler: StepHandler, scope: 'all' | 'own'): Promise<void>;
  /**
   * Takes over the step of a session whose process is gone; false when there is none or its process lives.
   */
  adopt(sessionId: string): Promise<boolean>;
  /** Who runs the queued step of a session: this process, another live one, one that is gone, or nobody. */
  ownerOf(sessionId: string): Promise<StepOwner>;
  /** A job of a queue elsewhere says that a step is due: begins it if it waits here. Absent where steps come from the store alone. */
  arrive?(payload: TurnStepPayload): boolean;
  /**
   * Stops taking steps and waits for running ones, for at most `graceMs` or until `hurry` is aborted; then hands the rest back, once `alongside` has
   * settled too: whatever else of the process ends at the same time.
   */
  stop(graceMs: number, hurry?: AbortSignal, alongside?: Promise<void>): Promise<void>;
}
/** Injection token of the `StepQueue`. */
export const STEP_QUEUE = Symbol('harness:step-queue');
