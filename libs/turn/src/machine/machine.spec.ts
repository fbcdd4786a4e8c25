import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { histories } from './test/histories.js';
import { World, type History } from './test/world.js';

/** `HISTORIES=20000 HISTORY_SEED=7` looks at more of them, and at others. */
const RUNS = Number(process.env['HISTORIES'] ?? 1_500);
const SEED = Number(process.env['HISTORY_SEED'] ?? 1);

/** Plays random histories and fails on the first that violates `invariant`, with what happened in it. */
function holds(invariant: string, worldOf = (history: History) => new World(history)): void {
  const offset = [...invariant].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7);
  fc.assert(
    fc.property(histories, (history) => {
      const world = worldOf(history).play();
      const found = world.violations.find((violation) => violation.invariant === invariant);
      if (found !== undefined) throw new Error(`${found.what}\n${world.trace.join('\n')}`);
    }),
    { numRuns: RUNS, seed: SEED + offset },
  );
}

describe('turn machine under random histories of crashes, repeats, sends and stops', () => {
  it('I1: a session has at most one live turn', () => holds('I1'));
  it('I2: what was accepted is in the transcript exactly once, in order of acceptance', () => holds('I2'));
  it('I3: a generate step leaves at most one assistant entry, under its id', () => holds('I3'));
  it('I4: the target of a call is invoked at most once, after its checkpoint is stored', () => holds('I4'));
  it('I5: every call has exactly one result before the next generation and at every kind of end', () => holds('I5'));
  it('I6: a terminal record never changes, and its commit tells of the end exactly once', () => holds('I6'));
  it('I7: nothing is invoked that the policy refuses, whatever the model asks for', () => holds('I7'));
  it('I11: a step is queued if and only if the writes of the one before it are committed', () => holds('I11'));
  it('I12: after a committed stop no new target is begun', () => holds('I12'));
  it('call ids are unique in the conversation, whatever ids the model gives', () => holds('ids'));
  it('a turn makes no more generations than it may', () => holds('limit'));
  it('a turn completes only when the model has seen every message', () => holds('seen'));
  it('every turn ends in a bounded number of steps once all is quiet, and no message stays parked', () => holds('live'));
  it('decides as a pure function: frozen arguments, the same answer twice', () => holds('pure', (history) => new World(history, { checkPurity: true })));

  it('the histories reach every kind of end, and what is hard about them', () => {
    const reached = new Map<string, number>();
    const count = (what: string): void => void reached.set(what, (reached.get(what) ?? 0) + 1);
    for (const history of fc.sample(histories, { numRuns: 300, seed: SEED })) {
      const world = new World(history).play();
      for (const event of world.store.events) if (event.type === 'harness::turn-completed') count(`${event.payload.status} ${event.payload.reason ?? ''}`.trim());
      for (const line of world.trace) if (line.includes('conflict')) count('conflict');
      for (const entry of world.store.entries) {
        if (entry.kind !== 'message' || entry.message.role !== 'function_result') continue;
        const { details } = entry.message;
        count(typeof details === 'object' && details !== null && 'error' in details ? String(details['error']) : 'result');
      }
    }
    for (const what of [
      'completed', 'completed length', 'completed max_turns', 'cancelled stopped', 'failed llm.x', 'failed harness/storage', 'conflict', 'result', 'outcome_unknown', 'stopped',
      'policy_denied', 'arguments_truncated', 'invalid_arguments', 'agent_trigger_no_target',
    ]) {
      expect(reached.get(what) ?? 0, what).toBeGreaterThan(3);
    }
  });
});
