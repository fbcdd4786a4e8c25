import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entryIds, errorCode, HARNESS_CODES, HarnessError, type SendRequest, type SendResponse } from '#libs/contracts';
import { decide } from '../machine/machine.js';
import { MemoryStore } from '../machine/test/store.js';
import { defaultSettings, type Journal, type Transcript } from '../ports/index.js';
import { isLive } from '../record/record.js';
import { type SendPorts, send } from './send.js';

/** How a commit goes: as it should, or with a store that fails before or after it has written. */
type Fate = 'stored' | 'lost' | 'stored, but nobody hears of it';
type Ask = { kind: 'send'; key: string; body: string; session_id: string | null } | { kind: 'end'; session_id: string };

const asks = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('send' as const),
        key: fc.constantFrom('k1', 'k1', 'k2'),
        body: fc.constantFrom('a', 'a', 'a', 'b'),
        session_id: fc.constantFrom('s_1', 's_1', 's_2', null),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), session_id: fc.constantFrom('s_1', 's_2') }) },
  ),
  { minLength: 2, maxLength: 10, size: 'max' },
);
const fates = fc.array(fc.constantFrom<Fate>('stored', 'stored', 'stored', 'lost', 'stored, but nobody hears of it'), { maxLength: 10 });

describe('I10: the same idempotency_key any number of times makes one message and one turn', () => {
  it('at once, after a failure on either side of the commit, after the end of the turn, with another body', async () => {
    await fc.assert(
      fc.asyncProperty(asks, fates, fc.scheduler(), async (history, planned, scheduler) => {
        const world = new Sends(scheduler, planned);
        await scheduler.waitFor(Promise.all(history.map((ask) => world.begin(ask))));
        world.check();
        const stored = world.messages();
        // Whoever did not hear asks again, when all is quiet and the store works.
        world.fates = [];
        await scheduler.waitFor(Promise.all(history.filter(({ kind }) => kind === 'send').map((ask) => world.begin(ask))));
        world.check();
        for (const id of stored) expect(world.messages().filter((known) => known === id)).toHaveLength(1);
        expect(world.answered()).toBe(new Set(history.flatMap((ask) => (ask.kind === 'send' ? [ask.key] : []))).size);
      }),
      { numRuns: 400, seed: 1 },
    );
  });
});

/** The real send over a store in memory; the scheduler decides in which order its reads and commits take place. */
class Sends {
  private readonly store = new MemoryStore(() => undefined);
  private readonly answers: { request: SendRequest; answer: SendResponse }[] = [];
  private readonly refusals: SendRequest[] = [];
  private readonly faults: unknown[] = [];
  private time = 0;
  private commits = 0;

  constructor(
    private readonly scheduler: fc.Scheduler,
    public fates: readonly Fate[],
  ) {}

  async begin(ask: Ask): Promise<void> {
    await this.scheduler.schedule(Promise.resolve(), ask.kind);
    if (ask.kind === 'send') await this.send(ask);
    else this.end(ask.session_id);
  }

  /** The ids of all messages, in a transcript or parked. */
  messages(): string[] {
    return [...this.store.sessions.values()].flatMap(({ entries, parked }) => [
      ...entries.filter((entry) => entry.kind === 'message').map((entry) => entry.id),
      ...parked.map((message) => message.entry_id),
    ]);
  }

  /** How many keys have an answer. */
  answered(): number {
    return new Set(this.answers.map(({ request }) => request.idempotency_key)).size;
  }

  check(): void {
    expect(this.faults).toEqual([]);
    for (const key of ['k1', 'k2']) {
      const answers = this.answers.filter(({ request }) => request.idempotency_key === key);
      const first = answers[0];
      const ids = this.messages().filter((id) => id === entryIds.idempotent(key));
      if (first === undefined) {
        expect(ids.length).toBeLessThanOrEqual(1);
        continue;
      }
      expect(ids).toHaveLength(1);
      const { session_id, turn_id } = first.answer;
      for (const { request, answer } of answers) {
        expect(answer).toMatchObject({ accepted: true, session_id, turn_id });
        expect([request.message, request.session_id]).toEqual([first.request.message, first.request.session_id]);
      }
      expect(answers.filter(({ answer }) => answer.deduplicated !== true).length).toBeLessThanOrEqual(1);
      for (const refused of this.refusals.filter((request) => request.idempotency_key === key))
        expect([refused.message, refused.session_id]).not.toEqual([first.request.message, first.request.session_id]);
    }
    const started = this.store.events.filter((event) => event.type === 'harness::turn-started');
    expect(started.length).toBeLessThanOrEqual(this.messages().length);
  }

  private async send({ key, body, session_id }: Extract<Ask, { kind: 'send' }>): Promise<void> {
    const request: SendRequest = { session_id, message: body, model: 'm', idempotency_key: key };
    try {
      this.answers.push({ request, answer: await send(this.ports(), request) });
    } catch (error) {
      if (errorCode(error) === HARNESS_CODES.idempotencyConflict) this.refusals.push(request);
      else if (errorCode(error) !== HARNESS_CODES.storage) this.faults.push(error);
    }
  }

  /** The live turn of a session ends. */
  private end(sessionId: string): void {
    const { record } = this.store.of(sessionId);
    if (!isLive(record)) return;
    this.store.commit(decide(record, { type: 'stopped', now: this.now(), partial: null, returned: null }).writes);
  }

  private ports(): SendPorts {
    const { scheduler, store } = this;
    const later = <T>(what: string, value: () => T): Promise<T> => scheduler.schedule(Promise.resolve(), what).then(value);
    const journal: Pick<Journal, 'load' | 'parked' | 'recall' | 'commit'> = {
      load: (sessionId) => later('load', () => store.of(sessionId).record),
      parked: (sessionId) => later('parked', () => store.of(sessionId).parked),
      recall: (key) => later('recall', () => store.keys.get(key) ?? null),
      commit: (writes, point) =>
        later(point, () => {
          const fate = this.fates[this.commits] ?? 'stored';
          this.commits += 1;
          if (fate === 'lost') throw new HarnessError(HARNESS_CODES.storage, fate);
          const result = store.commit(writes);
          if (fate !== 'stored' && result === 'committed') throw new HarnessError(HARNESS_CODES.storage, fate);
          return result;
        }),
    };
    const transcript: Pick<Transcript, 'entry'> = { entry: (sessionId, id) => later('entry', () => store.of(sessionId).entry(id)) };
    return {
      journal,
      transcript,
      settings: { current: () => defaultSettings },
      clock: { now: () => this.now() },
      feed: { publish: () => undefined },
    };
  }

  private now(): number {
    this.time += 1;
    return this.time;
  }
}
