import { errorMessage, type TurnStepPayload } from '#libs/contracts';
import type { StepHandler, StepOwner, StepQueue } from '#libs/turn';
import { within } from '../../processes/within.js';
import type { StepJobs } from '../step-jobs.js';
import type { BusJournal, QueuedStep } from './journal.js';

/** First and longest pause before a step whose own error could not be stored is tried again, in ms. */
const RETRY_MS = 500;
const RETRY_CAP_MS = 30_000;

export interface DocumentStepQueueOptions {
  /** Steps that run side by side. */
  concurrency: () => number;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

/** The step queue over documents: this process runs every step, since no other one can. */
export class DocumentStepQueue implements StepQueue {
  /** Undefined while steps are handed over in memory. */
  jobs: StepJobs | undefined;
  /** Looks at the steps that are found at a start, and gives those that may run. */
  audit: (steps: readonly QueuedStep[]) => Promise<readonly QueuedStep[]> = (steps) => Promise.resolve(steps);
  private handler: StepHandler | undefined;
  private readonly ready = new Map<string, { payload: TurnStepPayload; since: number }>();
  private readonly running = new Map<string, Promise<void>>();
  private readonly failures = new Map<string, number>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private stopping = false;

  constructor(
    private readonly journal: BusJournal,
    private readonly options: DocumentStepQueueOptions,
  ) {
    journal.handOver = (step) => this.handOver(step);
  }

  async start(handler: StepHandler): Promise<void> {
    const steps = await this.audit(await this.journal.recover());
    this.handler = handler;
    for (const step of steps) this.handOver(step);
  }

  arrive(payload: TurnStepPayload): boolean {
    return this.jobs?.arrive(payload) ?? false;
  }

  adopt(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async ownerOf(sessionId: string): Promise<StepOwner> {
    if (this.handler === undefined || this.stopping) return 'none';
    return (await this.journal.job(sessionId)) === null ? 'none' : 'self';
  }

  async stop(graceMs: number, hurry?: AbortSignal, alongside?: Promise<void>): Promise<void> {
    this.stopping = true;
    for (const timer of this.timers) clearTimeout(timer);
    await Promise.all([alongside, within(Promise.allSettled(this.running.values()), graceMs, hurry)]);
  }

  /** Steps that run or wait in this process, and how long the one that waits longest has waited, in ms. */
  get load(): { running: number; waiting: number; longest_wait_ms: number } {
    const now = Date.now();
    const waits = [...this.ready.values()].map(({ since }) => now - since);
    return { running: this.running.size, waiting: waits.length, longest_wait_ms: Math.max(0, ...waits) };
  }

  private handOver({ payload, notBefore }: QueuedStep): void {
    if (this.handler === undefined || this.stopping) return; // it stays queued: the next start takes it
    const delay = notBefore - Date.now();
    if (delay > 0) this.later(delay, payload);
    else if (this.jobs === undefined) this.begin(payload);
    else this.jobs.send(payload, () => this.begin(payload));
  }

  private begin(payload: TurnStepPayload): void {
    this.ready.set(payload.session_id, { payload, since: Date.now() }); // the newest commit of a session is the one that counts
    this.pump();
  }

  private pump(): void {
    for (const { payload } of [...this.ready.values()]) {
      if (this.stopping || this.running.size >= this.options.concurrency()) return;
      if (this.running.has(payload.session_id)) continue;
      this.ready.delete(payload.session_id);
      this.running.set(payload.session_id, this.run(payload));
    }
  }

  private async run(payload: TurnStepPayload): Promise<void> {
    const { session_id } = payload;
    try {
      await this.handler?.(payload);
      this.failures.delete(session_id);
    } catch (error) {
      if (!this.stopping) this.tryAgain(payload, error);
    } finally {
      this.running.delete(session_id);
      this.pump();
    }
  }

  /** The step's own error could not be stored: it stays queued and is tried again. */
  private tryAgain(payload: TurnStepPayload, error: unknown): void {
    const count = (this.failures.get(payload.session_id) ?? 0) + 1;
    this.failures.set(payload.session_id, count);
    const delay_ms = Math.min(RETRY_MS * 2 ** (count - 1), RETRY_CAP_MS);
    this.options.report('a step was cut off and is tried again', { ...payload, error: errorMessage(error), delay_ms });
    this.later(delay_ms, payload);
  }

  /** Hands a step over after a pause. One that is not due any more then is skipped when it begins. */
  private later(delayMs: number, payload: TurnStepPayload): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      this.handOver({ payload, notBefore: 0 });
    }, delayMs);
    this.timers.add(timer);
  }
}
