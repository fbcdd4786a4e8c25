import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { TurnStepPayload } from '#libs/contracts';
import type { TurnRecord } from '#libs/turn';
import type { StoreAdapter, StoreProcess, TestedStore } from './store.js';
import { advance, beginning, changed, committed, enqueue, finish, recordOf, until } from './turns.js';

const PATIENCE_MS = 20_000;
/** How long a worker has to stop after a test, in ms; none of them has anything left to do then. */
const GRACE_MS = 5_000;

/** A worker: a process with a handler that a test holds in its hands. */
class Worker {
  /** What began to run here, in order. */
  readonly begun: TurnStepPayload[] = [];
  readonly running = new Set<string>();
  /** The most that ran side by side. */
  peak = 0;
  /** True once a test has ended it. */
  isOver = false;
  /** What a step does; by default it ends its turn. */
  run: (payload: TurnStepPayload) => Promise<unknown> = ({ session_id }) => finish(this.process, session_id);
  private readonly waiting: (() => void)[] = [];

  constructor(readonly process: StoreProcess) {}

  start(scope: 'all' | 'own' = 'all'): Promise<void> {
    return this.process.queue.start(async (payload) => {
      if (this.running.has(payload.session_id)) throw new Error(`two steps of ${payload.session_id} at once`);
      this.running.add(payload.session_id);
      this.peak = Math.max(this.peak, this.running.size);
      this.begun.push(payload);
      for (const wake of this.waiting.splice(0)) wake();
      try {
        await this.run(payload);
      } finally {
        this.running.delete(payload.session_id);
      }
    }, scope);
  }

  async stop(graceMs: number, hurry?: AbortSignal): Promise<void> {
    this.isOver = true;
    await this.process.queue.stop(graceMs, hurry);
  }

  /** Has the step that it runs next wait; gives what lets it go on and end its turn. */
  holding(): () => void {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.run = async ({ session_id }) => {
      await released;
      await finish(this.process, session_id);
    };
    return release;
  }

  /** Waits until so many steps of a session have begun here. */
  async has(sessionId: string, steps = 1): Promise<void> {
    const end = Date.now() + PATIENCE_MS;
    while (this.of(sessionId).length < steps) {
      const left = end - Date.now();
      if (left <= 0) throw new Error(`${sessionId} did not run: ${JSON.stringify(this.begun)}`);
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
        timer = setTimeout(resolve, left);
      });
      clearTimeout(timer);
    }
  }

  of(sessionId: string): TurnStepPayload[] {
    return this.begun.filter(({ session_id }) => session_id === sessionId);
  }
}

/** What every adapter of the `StepQueue` port must do, beside the journal that puts steps in. */
export function queueConformance(adapter: StoreAdapter): void {
  const { ownedSteps, processes } = adapter.abilities;
  const forMany = it.skipIf(processes === 'one');
  const forOwners = it.skipIf(processes === 'one' || !ownedSteps);

  describe(`a step queue: ${adapter.name}`, () => {
    let store: TestedStore;
    const workers: Worker[] = [];
    let count = 0;
    beforeAll(async () => {
      store = await adapter.make();
    });
    afterEach(async () => {
      for (const worker of workers.splice(0)) if (!worker.isOver) await worker.process.queue.stop(GRACE_MS);
    });
    afterAll(async () => await store.dispose());

    const session = (): string => {
      count += 1;
      return `s_${count}`;
    };
    const worker = async (scope?: 'all' | 'own'): Promise<Worker> => {
      const made = new Worker(await store.open());
      workers.push(made);
      if (scope !== undefined) await made.start(scope);
      return made;
    };
    const begin = async (process: StoreProcess, id = session()): Promise<string> => {
      await committed(process, ...beginning(recordOf(id)));
      return id;
    };
    const statusOf = async (process: StoreProcess, id: string): Promise<string | undefined> => (await process.journal.load(id))?.status;
    const ended = (process: StoreProcess, id: string): Promise<void> =>
      until(`the end of ${id}`, async () => (await statusOf(process, id)) === 'completed');
    /** A step that hangs, in a worker that is killed over it. */
    const abandoned = async (): Promise<{ id: string; known: TurnRecord | null }> => {
      const dying = await worker('all');
      dying.run = () => new Promise(() => undefined);
      const id = await begin(dying.process);
      await dying.has(id);
      dying.isOver = true;
      const known = await dying.process.journal.load(id);
      await store.kill(dying.process);
      return { id, known };
    };

    it('is made of what the adapter says it covers', async () => {
      const { queue } = (await worker()).process;
      expect(adapter.covers.some((implementation) => queue instanceof implementation)).toBe(true);
    });

    it('runs a step that is committed, with what it was queued with', async () => {
      const one = await worker('all');
      const id = await begin(one.process);
      await one.has(id);
      await ended(one.process, id);
      expect(one.of(id)).toEqual([{ session_id: id, turn_id: `t_${id}`, step: 0 }]);
    });

    it('runs nothing of a commit that is a conflict', async () => {
      const one = await worker('all');
      const id = session();
      const record = recordOf(id, { version: 5 });
      const result = await one.process.journal.commit(
        [{ kind: 'save-record', record, expectedVersion: 4 }, enqueue(record)],
        'conformance',
      );
      expect(result).toBe('conflict');
      const after = await begin(one.process);
      await ended(one.process, after);
      expect(one.of(id)).toEqual([]);
    });

    it('runs the steps of a session in order, one after the other, while it is committed to by its own steps', async () => {
      const one = await worker('all');
      one.run = async ({ session_id, step }) => {
        if (step < 5) await advance(one.process, session_id);
        else await finish(one.process, session_id);
      };
      const id = await begin(one.process);
      await ended(one.process, id);
      expect(one.of(id).map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5]);
    });

    it('runs sessions side by side', async () => {
      const one = await worker('all');
      const all = [session(), session(), session()];
      let release: () => void = () => undefined;
      const together = new Promise<void>((resolve) => {
        release = resolve;
      });
      one.run = async ({ session_id }) => {
        if (one.running.size === all.length) release();
        await together;
        await finish(one.process, session_id);
      };
      await Promise.all(all.map(async (id) => await begin(one.process, id)));
      for (const id of all) await ended(one.process, id);
      expect(one.peak).toBe(all.length);
    });

    forMany('runs every step of many sessions once, over two workers', async () => {
      const [one, two] = [await worker('all'), await worker('all')];
      for (const each of [one, two])
        each.run = async ({ session_id, step }) => {
          if (step < 2) await advance(each.process, session_id);
          else await finish(each.process, session_id);
        };
      const all = await Promise.all(Array.from({ length: 20 }, (_, n) => begin(n % 2 === 0 ? one.process : two.process)));
      for (const id of all) await ended(one.process, id);
      for (const id of all) expect([...one.of(id), ...two.of(id)].map(({ step }) => step).sort()).toEqual([0, 1, 2]);
      expect([...one.process.reports, ...two.process.reports]).toEqual([]);
    });

    it('starts the step of a commit without waiting for a timer', async () => {
      const one = await worker('all');
      await ended(one.process, await begin(one.process));
      vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] });
      try {
        const id = await begin(one.process);
        await one.has(id);
      } finally {
        vi.useRealTimers();
      }
    });

    it('keeps a step until its time has come', async () => {
      const one = await worker('all');
      const id = session();
      const record = recordOf(id);
      const at = Date.now() + 300;
      const ran: number[] = [];
      one.run = async ({ session_id }) => {
        ran.push(Date.now());
        await finish(one.process, session_id);
      };
      await committed(
        one.process,
        { kind: 'ensure-session', session_id: id, timestamp: 1 },
        { kind: 'save-record', record, expectedVersion: null },
        enqueue(record, at),
      );
      await ended(one.process, id);
      expect(ran).toHaveLength(1);
      expect(ran[0]).toBeGreaterThanOrEqual(at - 2);
    });

    it('leaves a step alone that was taken off', async () => {
      const one = await worker();
      const id = await begin(one.process);
      await changed(one.process, id, { status: 'awaiting_functions' }, { kind: 'settle-step', session_id: id });
      await one.start();
      const after = await begin(one.process);
      await ended(one.process, after);
      expect(one.of(id)).toEqual([]);
      expect(await one.process.queue.ownerOf(id)).toBe('none');
    });

    it('keeps a step whose handler throws, and runs it again', async () => {
      const one = await worker('all');
      let tries = 0;
      one.run = async ({ session_id }) => {
        tries += 1;
        if (tries === 1) throw new Error('the disk is full');
        await finish(one.process, session_id);
      };
      const id = await begin(one.process);
      await ended(one.process, id);
      expect(one.of(id).map(({ step }) => step)).toEqual([0, 0]);
    });

    it('runs what was queued while nobody was there', async () => {
      const one = await worker();
      const id = await begin(one.process);
      expect(await one.process.queue.ownerOf(id)).toBe('none');
      const two = await worker('all');
      await ended(two.process, id);
      expect(two.of(id)).toHaveLength(1);
    });

    forMany('says who runs a step', async () => {
      const [one, two] = [await worker('all'), await worker()];
      const release = one.holding();
      const id = await begin(one.process);
      await one.has(id);
      expect(await one.process.queue.ownerOf(id)).toBe('self');
      expect(await two.process.queue.ownerOf(id)).toBe('other');
      expect(await two.process.queue.ownerOf('s_none')).toBe('none');
      release();
      await ended(two.process, id);
      expect(await one.process.queue.ownerOf(id)).toBe('none');
      await one.stop(GRACE_MS);
      const left = await abandoned();
      expect(await two.process.queue.ownerOf(left.id)).toBe('gone');
    });

    it('takes over the step of a process that is gone, once, and fences that process off where it could come back', async () => {
      const { id, known } = await abandoned();
      const first = await worker();
      const living = processes === 'one' ? [first] : [first, await worker()];
      const taken: (TurnRecord | null)[] = [];
      for (const each of living) {
        each.run = async ({ session_id }) => {
          if (session_id === id) taken.push(await each.process.journal.load(session_id));
          await finish(each.process, session_id);
        };
      }
      for (const each of living) await each.start();
      await ended(first.process, id);
      expect(taken).toHaveLength(1);
      if (processes === 'one') return;
      expect(taken[0]?.claims).toBeGreaterThan(known?.claims ?? 0);
      expect(taken[0]?.version).toBeGreaterThan(known?.version ?? 0);
    });

    forOwners('leaves the steps of others alone in a process of its own scope', async () => {
      const { id } = await abandoned();
      const own = await worker('own');
      const mine = await begin(own.process);
      await ended(own.process, mine);
      expect(own.of(id)).toEqual([]);
      expect(await own.process.queue.ownerOf(id)).toBe('gone');
      await ended((await worker('all')).process, id);
    });

    forOwners('adopts the step of a process that is gone, and none that lives or is not there', async () => {
      const living = await worker('own');
      const release = living.holding();
      const lives = await begin(living.process);
      await living.has(lives);
      const { id: left } = await abandoned();
      const own = await worker('own');
      expect(await own.process.queue.adopt('s_none')).toBe(false);
      expect(await own.process.queue.adopt(lives)).toBe(false);
      expect(await own.process.queue.adopt(left)).toBe(true);
      await ended(own.process, left);
      expect(own.of(left)).toHaveLength(1);
      release();
      await ended(living.process, lives);
    });

    it('waits for a running step when it is stopped', async () => {
      const one = await worker('all');
      const release = one.holding();
      const id = await begin(one.process);
      await one.has(id);
      const stopped = one.stop(PATIENCE_MS);
      release();
      await stopped;
      expect(await statusOf(one.process, id)).toBe('completed');
    });

    it.each(['its grace is over', 'it must hurry'])('hands back what still runs when %s', async (why) => {
      const one = await worker('all');
      one.run = () => new Promise(() => undefined);
      const id = await begin(one.process);
      await one.has(id);
      const hurry = new AbortController();
      const stopped = one.stop(why === 'it must hurry' ? PATIENCE_MS : 10, hurry.signal);
      if (why === 'it must hurry') hurry.abort();
      await stopped;
      const two = await worker('all');
      await ended(two.process, id);
      expect(two.of(id)).toHaveLength(1);
    });

    it('takes no step once it is stopped; what is committed there is for others', async () => {
      const one = await worker('all');
      await one.stop(0);
      const id = await begin(one.process);
      const two = await worker('all');
      await ended(two.process, id);
      expect(one.of(id)).toEqual([]);
    });
  });
}
