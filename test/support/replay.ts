import { afterAll, beforeAll, describe } from 'vitest';
import type { TurnStepPayload, TurnStepResult } from '#libs/contracts';
import { TurnExecutor } from '#libs/turn';
import { SqliteTranscript } from '../../libs/local/src/sessions/transcript.js';

/** Scenarios of turns, run in each of the modes. */
export function scenarios(name: string, define: () => void): void {
  describe.each(MODES)(`${name}, $how`, ({ replay }) => {
    let undo: () => void = () => undefined;
    beforeAll(() => {
      if (replay) undo = forceReplay();
    });
    afterAll(() => undo());
    define();
  });
}

/** The two ways in which each scenario runs. */
export const MODES = [
  { how: 'as they come', replay: false },
  { how: 'with the cache dropped and each step delivered three times', replay: true },
] as const;

/**
 * Makes every runtime of this process forget what it has read: the cached transcript is dropped before each read, and each
 * step is delivered again, once while it runs and once after. Returns how to undo that.
 */
export function forceReplay(): () => void {
  const executor = TurnExecutor.prototype;
  const transcript = SqliteTranscript.prototype;
  const { runStep } = executor;
  const { window, entry } = transcript;
  executor.runStep = async function (this: TurnExecutor, payload: TurnStepPayload): Promise<TurnStepResult> {
    const [first] = await Promise.all([runStep.call(this, payload), runStep.call(this, payload)]);
    await runStep.call(this, payload);
    return first;
  };
  transcript.window = function (this: SqliteTranscript, sessionId) {
    this.forget(sessionId);
    return window.call(this, sessionId);
  };
  transcript.entry = function (this: SqliteTranscript, sessionId, entryId) {
    this.forget(sessionId);
    return entry.call(this, sessionId, entryId);
  };
  return () => {
    executor.runStep = runStep;
    transcript.window = window;
    transcript.entry = entry;
  };
}
