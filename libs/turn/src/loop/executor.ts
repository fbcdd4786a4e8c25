import { BUS_CODES, errorCode, errorMessage, HarnessError, type TurnStepPayload, type TurnStepResult } from '#libs/contracts';
import type { Decision, TurnFailure } from '../machine/decision.js';
import { decide } from '../machine/machine.js';
import type { CommitResult } from '../ports/journal.js';
import { isTerminal, type TurnRecord } from '../record/record.js';
import { traceDecision } from '../tracing/ended.js';
import { RunTrace } from '../tracing/run-trace.js';
import { codeOf } from '../tracing/words.js';
import { takeLeftover, turnEnded } from './ended.js';
import { limitsOf } from './limits.js';
import { isStored } from './patient-commit.js';
import type { LoopPorts } from './ports.js';
import { StepRun } from './step-run.js';

/** Runs queued steps, one at a time in a session, and stops them. */
export class TurnExecutor {
  private readonly active = new Map<string, { turnId: string; stop: AbortController }>();

  constructor(private readonly ports: LoopPorts) {
    ports.journal.onAbortRequested((sessionId) => this.abort(sessionId));
  }

  /** True while this process runs a step of the session. */
  isActive(sessionId: string): boolean {
    return this.active.has(sessionId);
  }

  /** Ends the running step of a session: its stream is closed, its call given up. What follows is read from the record. */
  abort(sessionId: string): void {
    this.active.get(sessionId)?.stop.abort();
  }

  /**
   * Runs one step. A stale or repeated one is `skipped`. Throws only when even the failure of the step could not be
   * stored, or when the connection to the engine was lost: then the step is still queued.
   */
  async runStep(payload: TurnStepPayload): Promise<TurnStepResult> {
    const { session_id, turn_id } = payload;
    const record = await this.ports.journal.load(session_id);
    if (record === null || record.turn_id !== turn_id || this.active.has(session_id)) {
      return { session_id, status: record?.status ?? 'failed', skipped: true };
    }
    const stop = new AbortController();
    this.active.set(session_id, { turnId: turn_id, stop });
    const trace = stepTrace(this.ports, record);
    const run = new StepRun({ ...this.ports, bus: trace.bus }, record, payload, stop.signal, trace);
    try {
      const answer = await run.perform();
      if (answer.skipped !== true) trace.end(null);
      if (isTerminal(run.latest.status)) await takeLeftover(this.ports, session_id);
      return answer;
    } catch (error) {
      trace.end(codeOf(errorCode(error), 'failed'));
      if (errorCode(error) === BUS_CODES.connectionLost) throw error; // no failure of the step's: it stays queued
      return await this.recordFailure(payload, run, error);
    } finally {
      this.active.delete(session_id);
    }
  }

  /** Stores that a step failed: queued again after a pause while tries are left, else the turn fails. A step that was taken over is left to its new owner. */
  private async recordFailure(payload: TurnStepPayload, run: StepRun, error: unknown): Promise<TurnStepResult> {
    const { journal, settings, clock, feed, spans } = this.ports;
    const { session_id, turn_id, step } = payload;
    const record = await journal.load(session_id);
    const mine = record !== null && record.turn_id === turn_id && record.step === step && record.claims === run.latest.claims;
    if (mine && isTerminal(record.status) && !isTerminal(run.latest.status)) {
      traceDecision(spans, run.latest, { record, writes: [] }, clock.now());
      await turnEnded(this.ports, record); // the commit that ended the turn is stored, although it failed for who waited for it
      return { session_id, status: record.status };
    }
    if (!mine || record.status !== 'running') return { session_id, status: record?.status ?? 'failed', skipped: true };
    const decision = decide(record, {
      type: 'step-failed',
      now: clock.now(),
      failure: failureOf(error),
      limits: limitsOf(settings.current()),
    });
    if ((await this.commitOnce(decision)) === 'conflict') throw error;
    traceDecision(spans, record, decision, clock.now());
    if (isTerminal(decision.record.status)) await turnEnded(this.ports, decision.record);
    else
      feed.publish({
        type: 'notice',
        session_id: record.session_id,
        turn_id: record.turn_id,
        text: `Step ${record.step} failed (${errorMessage(error)}); it is tried again.`,
      });
    return {
      session_id: record.session_id,
      status: decision.record.status,
      ...(decision.next.do === 'rest' && decision.next.outcome === 'queued' ? { next_step: record.step } : {}),
    };
  }

  /** Commits the failure of a step. When that fails too, what is stored then tells whether it has taken effect all the same. */
  private async commitOnce({ record, writes }: Decision): Promise<CommitResult> {
    const { journal } = this.ports;
    try {
      return await journal.commit(writes, 'step-failed');
    } catch (error) {
      if (await isStored(journal, record)) return 'committed';
      throw error;
    }
  }
}

/** The trace of one run of a step. */
const stepTrace = (ports: LoopPorts, record: TurnRecord): RunTrace =>
  new RunTrace(ports, record, {
    name: `step ${record.step}`,
    attributes: { 'harness.step': record.step, 'harness.failures': record.failures, 'harness.claims': record.claims },
  });

const failureOf = (error: unknown): TurnFailure => ({
  code: errorCode(error) ?? 'harness.internal',
  message: errorMessage(error),
  retryable: error instanceof HarnessError ? error.retryable : true,
});
