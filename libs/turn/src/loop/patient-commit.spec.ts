import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HarnessError } from '#libs/contracts';
import type { Decision } from '../machine/decision.js';
import type { CommitResult, Journal } from '../ports/journal.js';
import type { TurnRecord } from '../record/record.js';
import { commitPatiently } from './patient-commit.js';

const full = (): HarnessError => new HarnessError('harness/storage', 'the disk is full', { retry: 'retry' });
const record = { session_id: 's', version: 7 } as TurnRecord;
const decision: Decision = { record, writes: [{ kind: 'settle-step', session_id: 's' }], next: { do: 'rest', outcome: 'ended' } };

/** A journal that answers in turn, and holds `stored`. */
function journal(
  answers: (CommitResult | Error)[],
  stored: TurnRecord | null = null,
): Pick<Journal, 'commit' | 'load'> & { commits: number } {
  return {
    commits: 0,
    load: () => Promise.resolve(stored),
    commit() {
      this.commits += 1;
      const answer = answers.shift();
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? 'committed');
    },
  };
}

describe('a commit that the store cannot take', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  const run = async (
    store: ReturnType<typeof journal>,
    signal = new AbortController().signal,
  ): Promise<{ outcome: unknown; told: string[] }> => {
    const told: string[] = [];
    const outcome = commitPatiently(store as unknown as Journal, decision, 'p', signal, (text) => told.push(text)).catch(
      (error: unknown) => error,
    );
    await vi.runAllTimersAsync();
    return { outcome: await outcome, told };
  };

  it('is made again until the store can, and that is told once', async () => {
    const store = journal([full(), full(), full(), 'committed']);
    const { outcome, told } = await run(store);
    expect({ outcome, commits: store.commits }).toEqual({ outcome: 'committed', commits: 4 });
    expect(told).toEqual(['The turn waits, because it cannot be stored: the disk is full', 'It is stored now; the turn goes on.']);
  });

  it('is a conflict when the record has gone on meanwhile', async () => {
    expect((await run(journal([full(), 'conflict'], { ...record, version: 8 }))).outcome).toBe('conflict');
  });

  it('fails when it had been stored although the store said that it had failed', async () => {
    const failure = full();
    expect((await run(journal([failure, 'conflict'], { ...record }))).outcome).toBe(failure);
  });

  it('is not made again after another error, or a stop', async () => {
    const fault = new Error('a fault');
    expect(await run(journal([fault]))).toEqual({ outcome: fault, told: [] });
    const stop = new AbortController();
    stop.abort();
    const failure = full();
    expect((await run(journal([failure]), stop.signal)).outcome).toBe(failure);
  });
});
