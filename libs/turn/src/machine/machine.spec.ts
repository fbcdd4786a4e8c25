import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { histories } from './test/histories.js';
import { type History, World } from './test/world.js';

/** `HISTORIES=50000 HISTORY_SEED=7` looks at more of them, and at others. */
const RUNS = Number(process.env['HISTORIES'] ?? 3_000);
/** For a wide search on a busy machine. */
const PATIENCE_MS = 60_000 + 10 * RUNS;
const SEED = Number(process.env['HISTORY_SEED'] ?? 1);

const violationOf = (history: History, invariant: string): string | null => {
  const world = new World(history).play();
  const found = world.violations.find((violation) => violation.invariant === invariant);
  return found === undefined ? null : `${found.what}\n${world.trace.join('\n')}`;
};

describe('turn machine under random histories of crashes, repeats, sends, stops and resolves', () => {
  /** A history that violates an invariant, by invariant. */
  const broken = new Map<string, History>();
  const reached = new Map<string, number>();
  const count = (what: string): void => void reached.set(what, (reached.get(what) ?? 0) + 1);

  beforeAll(() => {
    for (const [index, history] of fc.sample(histories, { numRuns: RUNS, seed: SEED }).entries()) {
      const world = new World(history, { checkPurity: index % 10 === 0 }).play();
      for (const { invariant } of world.violations) if (!broken.has(invariant)) broken.set(invariant, history);
      tally(world, count);
    }
  }, PATIENCE_MS);

  /** Fails with a small history that violates `invariant`, and with all that happens in it. */
  function holds(invariant: string): void {
    if (!broken.has(invariant)) return;
    fc.assert(
      fc.property(histories, (history) => {
        const violation = violationOf(history, invariant);
        if (violation !== null) throw new Error(violation);
      }),
      { numRuns: RUNS, seed: SEED },
    );
    throw new Error(violationOf(broken.get(invariant) as History, invariant) ?? `${invariant} was violated`);
  }

  it('I1: a session has at most one live turn', () => holds('I1'));
  it('I2: what was accepted is in the transcript exactly once, in order of acceptance', () => holds('I2'));
  it('I3: a generate step leaves at most one assistant entry, under its id', () => holds('I3'));
  it('I4: the target of a call is invoked at most once, after its checkpoint is stored', () => holds('I4'));
  it('I5: every call has exactly one result before the next generation and at every kind of end', () => holds('I5'));
  it('I6: a terminal record never changes, and its commit tells of the end exactly once', () => holds('I6'));
  it('I7: nothing is invoked that the policy refuses, whatever the model asks for', () => holds('I7'));
  it('I8: a parked turn has nothing queued, and nothing goes on with it', () => holds('I8'));
  it('I9: a call is settled once, whichever of its result, a resolve, the sweep and a stop comes first', () => holds('I9'));
  it('I11: a step is queued if and only if the writes of the one before it are committed', () => holds('I11'));
  it('I12: after a stop nothing of the turn or of its descendants is begun', () => holds('I12'));
  it('no call waits for a child whose end was delivered, however often, late or after which crash', () => holds('child'));
  it('call ids are unique in the conversation, whatever ids the model gives', () => holds('ids'));
  it('a turn makes no more generations than it may', () => holds('limit'));
  it('a turn completes only when the model has seen every message', () => holds('seen'));
  it('every turn ends in a bounded number of steps once all is quiet, and no message stays parked', () => holds('live'));
  it('decides as a pure function: frozen arguments, the same answer twice', () => holds('pure'));

  it.each([
    'completed',
    'completed length',
    'completed max_turns',
    'completed invalid_result',
    'cancelled stopped',
    'failed llm.x',
    'failed harness/storage',
    'conflict',
    'result',
    'outcome_unknown',
    'stopped',
    'policy_denied',
    'hook_denied',
    'pending_timeout',
    'invalid_result',
    'arguments_truncated',
    'invalid_arguments',
    'agent_trigger_no_target',
    'released',
    'child',
    'child completed',
    'child cancelled',
    'child failed',
    'grandchild',
    'answered late',
    'drained',
    'resent',
  ])('the histories reach "%s"', (what) => {
    expect(reached.get(what) ?? 0).toBeGreaterThan(RUNS / 1_000);
  });
});

/** Counts what a history has come to, so that nothing that is hard is left out unseen. */
function tally({ store, trace }: World, count: (what: string) => void): void {
  for (const event of store.events) {
    if (event.type !== 'harness::turn-completed') continue;
    const { status, reason, depth, parent } = event.payload;
    count(`${status} ${reason ?? ''}`.trim());
    if (parent) count(`child ${status}`);
    if (depth > 1) count('grandchild');
  }
  for (const line of trace) {
    if (line.includes('conflict')) count('conflict');
    if (line.includes('with held arguments')) count('released');
    if (line.includes('call-spawned committed')) count('child');
    if (line.includes('answered late')) count('answered late');
    if (line.includes('leftover committed')) count('drained');
    if (line.includes('generation again')) count('resent');
  }
  for (const entry of [...store.sessions.values()].flatMap((session) => session.entries)) {
    if (entry.kind !== 'message' || entry.message.role !== 'function_result') continue;
    const { details } = entry.message;
    count(typeof details === 'object' && details !== null && 'error' in details ? String(details['error']) : 'result');
  }
}
