import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { SessionMeta } from '#libs/contracts';
import type { TurnEvent, Write } from '#libs/turn';
import type { StoreAdapter, StoreProcess, TestedStore } from './store.js';
import { beginning, changed, committed, enqueue, ensure, entryOf, finish, parkedOf, recordOf, save, until, userMessage } from './turns.js';

/** What every adapter of the `Journal` port must do. */
export function journalConformance(adapter: StoreAdapter): void {
  describe(`a journal: ${adapter.name}`, () => {
    let store: TestedStore;
    let one: StoreProcess;
    let other: StoreProcess;
    let count = 0;
    beforeAll(async () => {
      store = await adapter.make();
      one = await store.open();
      other = adapter.abilities.processes === 'one' ? one : await store.open();
    });
    afterAll(async () => await store.dispose());

    const session = (): string => {
      count += 1;
      return `s_${count}`;
    };
    /** A session with a turn under way. */
    const begun = async (): Promise<string> => {
      const id = session();
      await committed(one, ensure(id), save(recordOf(id), null));
      return id;
    };
    const commit = (...writes: Write[]): Promise<string> => one.journal.commit(writes, 'conformance');
    const metaOf = async (session_id: string, at = one): Promise<SessionMeta | null> =>
      (await at.bus.trigger<{ meta: SessionMeta } | null>({ function_id: 'session::get', payload: { session_id } }))?.meta ?? null;
    const ids = async (id: string, at = one): Promise<string[]> => (await at.transcript.window(id)).map((entry) => entry.id);
    const parkedIds = async (id: string, at = one): Promise<string[]> => (await at.journal.parked(id)).map(({ entry_id }) => entry_id);

    it('is made of what the adapter says it covers', () => {
      const parts = [one.journal, one.transcript, one.queue];
      for (const implementation of adapter.covers) expect(parts.some((part) => part instanceof implementation)).toBe(true);
    });

    it('keeps a record as it is given, and has none where none was saved', async () => {
      const id = session();
      const record = recordOf(id, {
        calls: [
          { id: 'c1', function_id: 'a::b', state: 'pending', arguments: { text: 'größer 🌍', nothing: null }, held_by: 'h', expires_at: 9 },
        ],
        submission: { value: [1, null] },
        parent: { session_id: 'p', turn_id: 't_p', function_call_id: 'c' },
        children: [{ function_call_id: 'c1', session_id: 'k', turn_id: 't_k' }],
      });
      expect(await one.journal.load(id)).toBeNull();
      await committed(one, ensure(id), save(record, null));
      expect(await one.journal.load(id)).toEqual(record);
      expect(await other.journal.load(id)).toEqual(record);
    });

    it('saves a record only over the version that is named', async () => {
      const id = await begun();
      expect(await commit(save(recordOf(id, { version: 2 }), null))).toBe('conflict');
      expect(await commit(save(recordOf(id, { version: 3 }), 2))).toBe('conflict');
      expect(await commit(save(recordOf(session(), { version: 2 }), 1))).toBe('conflict');
      expect((await one.journal.load(id))?.version).toBe(1);
      expect(await commit(save(recordOf(id, { version: 2, step: 4 }), 1))).toBe('committed');
      expect(await other.journal.load(id)).toMatchObject({ version: 2, step: 4 });
    });

    it('checks a version without a save', async () => {
      const id = await begun();
      const entry = (name: string): Write => ({ kind: 'append-entry', session_id: id, entry: entryOf(name) });
      const check = (version: number): Write => ({ kind: 'check-record', session_id: id, version });
      expect(await commit(entry('e_no'), check(2))).toBe('conflict');
      expect(await commit(entry('e_yes'), check(1))).toBe('committed');
      expect(await ids(id)).toEqual(['e_yes']);
      expect((await one.journal.load(id))?.version).toBe(1);
    });

    it('writes nothing of a commit that is a conflict, whatever is in it', async () => {
      const id = await begun();
      await committed(one, { kind: 'append-entry', session_id: id, entry: entryOf('e_1') });
      await committed(one, { kind: 'park-message', session_id: id, turn_id: `t_${id}`, parked: parkedOf('e_p') });
      const heard: TurnEvent[] = [];
      one.hear((event) => void heard.push(event));
      const made = session();
      const result = await commit(
        ensure(made),
        { kind: 'append-entry', session_id: id, entry: entryOf('e_2') },
        { kind: 'put-entry', session_id: id, entry: entryOf('e_1', 'changed') },
        { kind: 'set-status', session_id: id, status: 'error', reason: 'no', timestamp: 2 },
        { kind: 'park-message', session_id: id, turn_id: `t_${id}`, parked: parkedOf('e_q') },
        { kind: 'take-messages', session_id: id, entry_ids: ['e_p'] },
        { kind: 'remember-key', key: `k_${id}`, answer: { session_id: id, turn_id: 't', entry_id: 'e', digest: 'd' }, expires_at: 9e15 },
        enqueue(recordOf(id)),
        { kind: 'emit', event: started(id) },
        save(recordOf(id, { version: 9 }), 8),
      );
      expect(result).toBe('conflict');
      expect(await metaOf(made)).toBeNull();
      expect(await ids(id)).toEqual(['e_1']);
      expect(await one.transcript.entry(id, 'e_1')).toMatchObject({ message: userMessage('e_1'), revision: 0 });
      expect(await metaOf(id)).toMatchObject({ status: 'idle' });
      expect(await parkedIds(id)).toEqual(['e_p']);
      expect(await one.journal.recall(`k_${id}`)).toBeNull();
      expect(await one.journal.load(id)).toEqual(recordOf(id));
      expect(await one.queue.ownerOf(id)).toBe('none');
      await committed(one, ensure(made), { kind: 'emit', event: started(made) });
      await until('the event of a later commit', () => heard.length > 0);
      expect(heard.map(({ payload }) => payload.session_id)).toEqual([made]);
    });

    it('lets one of those win that race for a version, and leaves nothing of the others', async () => {
      const id = await begun();
      const racers = Array.from({ length: 8 }, (_, n) =>
        (n % 2 === 0 ? one : other).journal.commit(
          [{ kind: 'append-entry', session_id: id, entry: entryOf(`e_${n}`) }, save(recordOf(id, { version: 2, step: n }), 1)],
          'conformance',
        ),
      );
      const results = await Promise.all(racers);
      expect(results.filter((result) => result === 'committed')).toHaveLength(1);
      const winner = results.indexOf('committed');
      expect((await one.journal.load(id))?.step).toBe(winner);
      expect(await ids(id)).toEqual([`e_${winner}`]);
      expect(await ids(id, other)).toEqual([`e_${winner}`]);
    });

    it('lets one of those win that race to begin a session', async () => {
      const id = session();
      const racers = Array.from({ length: 6 }, (_, n) =>
        (n % 2 === 0 ? one : other).journal.commit([ensure(id), save(recordOf(id, { turn_id: `t_${n}` }), null)], 'conformance'),
      );
      expect((await Promise.all(racers)).filter((result) => result === 'committed')).toHaveLength(1);
    });

    it('takes commits of many sessions at the same moment', async () => {
      const all = Array.from({ length: 40 }, session);
      await Promise.all(all.map((id, n) => committed(n % 2 === 0 ? one : other, ensure(id), save(recordOf(id), null))));
      for (const id of all) expect((await one.journal.load(id))?.session_id).toBe(id);
    });

    it('makes a session once: title and metadata are of the first commit', async () => {
      const id = session();
      await committed(one, { kind: 'ensure-session', session_id: id, title: 'first', metadata: { a: 1 }, timestamp: 5 });
      await committed(one, { kind: 'ensure-session', session_id: id, title: 'second', metadata: { b: 2 }, timestamp: 6 });
      expect(await metaOf(id, other)).toMatchObject({ title: 'first', metadata: { a: 1 }, status: 'idle' });
    });

    it('appends an entry once, and leaves one alone that is there', async () => {
      const id = session();
      const append = (name: string, text?: string): Write => ({ kind: 'append-entry', session_id: id, entry: entryOf(name, text) });
      await committed(one, ensure(id), append('e_a'), append('e_b'));
      await committed(one, append('e_a', 'other words'), append('e_c'));
      expect(await ids(id)).toEqual(['e_a', 'e_b', 'e_c']);
      expect(await one.transcript.entry(id, 'e_a')).toMatchObject({ message: userMessage('e_a'), revision: 0 });
      expect(await metaOf(id)).toMatchObject({ message_count: 3 });
    });

    it('puts an entry: it is appended, then replaced at its place with a new revision', async () => {
      const id = session();
      const put = (name: string, text: string): Write => ({ kind: 'put-entry', session_id: id, entry: entryOf(name, text) });
      await committed(one, ensure(id), put('e_a', 'begun'), { kind: 'append-entry', session_id: id, entry: entryOf('e_b') });
      await committed(one, put('e_a', 'finished'));
      expect(await ids(id)).toEqual(['e_a', 'e_b']);
      const entry = await one.transcript.entry(id, 'e_a');
      expect(entry).toMatchObject({ message: userMessage('finished') });
      expect(entry?.revision).toBeGreaterThan(0);
      expect(await other.transcript.entry(id, 'e_a')).toEqual(entry);
    });

    it('keeps custom entries and the origin of entries', async () => {
      const id = session();
      const custom: Write = {
        kind: 'append-entry',
        session_id: id,
        entry: { entry_id: 'e_x', timestamp: 3, origin: { turn_id: 't' }, custom: { custom_type: 'mark', data: { deep: [1, null] } } },
      };
      await committed(one, ensure(id), custom);
      expect(await other.transcript.entry(id, 'e_x')).toMatchObject({
        kind: 'custom',
        custom_type: 'mark',
        data: { deep: [1, null] },
        origin: { turn_id: 't' },
      });
    });

    it('sets the status of a session with its reason', async () => {
      const id = session();
      await committed(one, ensure(id), { kind: 'set-status', session_id: id, status: 'error', reason: 'because', timestamp: 2 });
      expect(await metaOf(id, other)).toMatchObject({ status: 'error', status_reason: 'because' });
      await committed(one, { kind: 'set-status', session_id: id, status: 'done', timestamp: 3 });
      expect(await metaOf(id, other)).toMatchObject({ status: 'done' });
    });

    it('parks messages for the running turn in order of arrival, each once, and gives back those that are not taken', async () => {
      const id = await begun();
      const park = (name: string, turn_id = `t_${id}`): Write => ({
        kind: 'park-message',
        session_id: id,
        turn_id,
        parked: parkedOf(name),
      });
      for (const name of ['e_c', 'e_a', 'e_b', 'e_a']) await committed(name === 'e_a' ? other : one, park(name));
      expect(await one.journal.parked(id)).toEqual([parkedOf('e_c'), parkedOf('e_a'), parkedOf('e_b')]);
      expect(await commit(park('e_d', 't_another'))).toBe('conflict');
      await committed(one, { kind: 'take-messages', session_id: id, entry_ids: ['e_c', 'e_b'] });
      expect(await parkedIds(id, other)).toEqual(['e_a']);
    });

    it('parks for a turn that waits for calls only when told to, and for none that is over or was never there', async () => {
      const id = await begun();
      const park = (pending?: true): Write => ({
        kind: 'park-message',
        session_id: id,
        turn_id: `t_${id}`,
        parked: parkedOf('e_p'),
        ...(pending === undefined ? {} : { pending }),
      });
      await changed(one, id, { status: 'awaiting_functions' });
      expect(await commit(park())).toBe('conflict');
      expect(await commit(park(true))).toBe('committed');
      await changed(one, id, { status: 'completed' }, { kind: 'take-messages', session_id: id, entry_ids: ['e_p'] });
      expect(await commit(park())).toBe('conflict');
      expect(await commit(park(true))).toBe('conflict');
      const none = session();
      await committed(one, ensure(none));
      expect(await commit({ kind: 'park-message', session_id: none, turn_id: 't', parked: parkedOf('e_p') })).toBe('conflict');
      expect(await one.journal.parked(none)).toEqual([]);
    });

    it('refuses to save over a parked message when told to', async () => {
      const id = await begun();
      const end: Write = {
        kind: 'save-record',
        record: recordOf(id, { version: 2, status: 'completed' }),
        expectedVersion: 1,
        requireNoneParked: true,
      };
      await committed(one, { kind: 'park-message', session_id: id, turn_id: `t_${id}`, parked: parkedOf('e_p') });
      expect(await commit(end)).toBe('conflict');
      expect((await one.journal.load(id))?.status).toBe('running');
      await committed(one, { kind: 'take-messages', session_id: id, entry_ids: ['e_p'] });
      expect(await commit(end)).toBe('committed');
    });

    it('never has both of those that race: the end of a turn, and a message for it', async () => {
      for (let round = 0; round < 6; round += 1) {
        const id = await begun();
        const [ended, parked] = await Promise.all([
          one.journal.commit(
            [
              {
                kind: 'save-record',
                record: recordOf(id, { version: 2, status: 'completed' }),
                expectedVersion: 1,
                requireNoneParked: true,
              },
            ],
            'conformance',
          ),
          other.journal.commit([{ kind: 'park-message', session_id: id, turn_id: `t_${id}`, parked: parkedOf('e_p') }], 'conformance'),
        ]);
        expect([ended, parked].sort()).toEqual(['committed', 'conflict']);
      }
    });

    it('remembers a key once, until its time is over', async () => {
      const id = session();
      const answer = { session_id: id, turn_id: 't', entry_id: 'e', digest: 'd' };
      const remember = (key: string, digest: string, expires_at: number): Write => ({
        kind: 'remember-key',
        key,
        answer: { ...answer, digest },
        expires_at,
      });
      const later = Date.now() + 1e9;
      expect(await one.journal.recall(`k_${id}`)).toBeNull();
      const results = await Promise.all(
        Array.from({ length: 4 }, (_, n) =>
          (n % 2 === 0 ? one : other).journal.commit([ensure(session()), remember(`k_${id}`, `d${n}`, later)], 'conformance'),
        ),
      );
      expect(results.filter((result) => result === 'committed')).toHaveLength(1);
      expect(await other.journal.recall(`k_${id}`)).toEqual({ ...answer, digest: `d${results.indexOf('committed')}` });
      expect(await commit(ensure(id), remember(`old_${id}`, 'past', Date.now() - 1))).toBe('committed');
      expect(await one.journal.recall(`old_${id}`)).toBeNull();
      expect(await commit(ensure(id), remember(`old_${id}`, 'new', later))).toBe('committed');
      expect(await one.journal.recall(`old_${id}`)).toEqual({ ...answer, digest: 'new' });
    });

    it('knows the turns with a call whose time is over, and forgets them when it is settled', async () => {
      const early = await begun();
      const late = await begun();
      const pending = (expires_at?: number) => [
        { id: 'c', function_id: 'a::b', state: 'pending' as const, ...(expires_at === undefined ? {} : { expires_at }) },
      ];
      await changed(one, early, { status: 'awaiting_functions', calls: pending(1_000) });
      await changed(one, late, { status: 'awaiting_functions', calls: pending(2_000) });
      await changed(one, await begun(), { status: 'awaiting_functions', calls: pending() });
      const due = async (now: number): Promise<string[]> => (await other.journal.due(now)).filter((id) => id === early || id === late);
      expect(await due(999)).toEqual([]);
      expect(await due(1_000)).toEqual([early]);
      expect((await due(5_000)).sort()).toEqual([early, late].sort());
      await changed(one, early, { status: 'running', calls: [{ id: 'c', function_id: 'a::b', state: 'done' }] });
      expect(await due(5_000)).toEqual([late]);
    });

    it('knows sessions with a parked message and no turn that would take it', async () => {
      const live = await begun();
      const left = await begun();
      for (const id of [live, left])
        await committed(one, { kind: 'park-message', session_id: id, turn_id: `t_${id}`, parked: parkedOf('e_p') });
      const stranded = async (): Promise<string[]> => (await other.journal.stranded()).filter((id) => id === live || id === left);
      expect(await stranded()).toEqual([]);
      await changed(one, left, { status: 'failed' });
      expect(await stranded()).toEqual([left]);
      await committed(one, { kind: 'take-messages', session_id: left, entry_ids: ['e_p'] });
      expect(await stranded()).toEqual([]);
    });

    it('delivers an event after its commit, again until it is taken, in the order of the session', async () => {
      const id = session();
      const heard: string[] = [];
      let refused = 0;
      one.hear(async (event) => {
        if (event.payload.session_id !== id) return;
        expect(await one.journal.load(id)).not.toBeNull();
        if (refused === 0) {
          refused += 1;
          throw new Error('not now');
        }
        heard.push(event.type);
      });
      await committed(one, ensure(id), save(recordOf(id), null), { kind: 'emit', event: started(id) });
      await until('the event', () => heard.length === 1);
      await changed(one, id, { status: 'completed' }, { kind: 'emit', event: completed(id) });
      await until('the second event', () => heard.length === 2);
      expect(heard).toEqual(['harness::turn-started', 'harness::turn-completed']);
    });

    it.skipIf(adapter.abilities.processes === 'one')('tells the process that runs a turn when another one asks to stop it', async () => {
      const runner = await store.open();
      const id = session();
      const told: string[] = [];
      let end: () => void = () => undefined;
      const runs = new Promise<void>((resolve) => {
        void runner.queue.start(async ({ session_id }) => {
          resolve();
          await new Promise<void>((release) => {
            end = release;
          });
          await finish(runner, session_id);
        }, 'own');
      });
      const leave = runner.journal.onAbortRequested((sessionId) => {
        told.push(sessionId);
        end();
      });
      await committed(runner, ...beginning(recordOf(id)));
      await runs;
      await changed(one, id, { abort_requested: true });
      await until('the request', () => told.includes(id));
      leave();
      await until('the end of the turn', async () => (await one.journal.load(id))?.status === 'completed');
      await runner.queue.stop(1_000);
    });

    it('has all that was acknowledged after a kill', async () => {
      const own = await adapter.make();
      onTestFinished(async () => await own.dispose());
      const killed = await own.open();
      const id = session();
      const record = recordOf(id);
      await committed(
        killed,
        { kind: 'ensure-session', session_id: id, title: 'kept', timestamp: 1 },
        { kind: 'append-entry', session_id: id, entry: entryOf('e_1') },
        { kind: 'set-status', session_id: id, status: 'working', timestamp: 1 },
        save(record, null),
        { kind: 'remember-key', key: `k_${id}`, answer: { session_id: id, turn_id: 't', entry_id: 'e', digest: 'd' }, expires_at: 9e15 },
      );
      await committed(killed, { kind: 'park-message', session_id: id, turn_id: record.turn_id, parked: parkedOf('e_p') });
      await own.kill(killed);
      const next = await own.open();
      expect(await next.journal.load(id)).toEqual(record);
      expect(await ids(id, next)).toEqual(['e_1']);
      expect(await parkedIds(id, next)).toEqual(['e_p']);
      expect(await metaOf(id, next)).toMatchObject({ title: 'kept', status: 'working' });
      expect(await next.journal.recall(`k_${id}`)).not.toBeNull();
    });

    it('delivers the event of a process that was killed before anybody took it', async () => {
      const own = await adapter.make();
      onTestFinished(async () => await own.dispose());
      const killed = await own.open();
      const id = session();
      killed.hear(() => new Promise<void>(() => undefined));
      await committed(killed, ensure(id), { kind: 'emit', event: started(id) });
      await own.kill(killed);
      const next = await own.open();
      const heard: TurnEvent[] = [];
      next.hear((event) => {
        if (event.payload.session_id === id) heard.push(event);
      });
      await until('the event', () => heard.length > 0);
      expect(heard[0]).toEqual(started(id));
    });

    it('makes a commit happen as a whole or not at all, between whichever of its effects it is cut off', async () => {
      const { cutOff } = adapter;
      if (cutOff === undefined) throw new Error(`${adapter.name} cannot be cut off`);
      const before = recordOf('s_cut');
      const after = { ...before, version: 2, status: 'completed' as const };
      const prepare: Write[] = [...beginning(before), { kind: 'append-entry', session_id: 's_cut', entry: entryOf('e_1') }];
      const writes: Write[] = [
        { kind: 'put-entry', session_id: 's_cut', entry: entryOf('e_1', 'changed') },
        { kind: 'append-entry', session_id: 's_cut', entry: entryOf('e_2') },
        { kind: 'append-entry', session_id: 's_cut', entry: entryOf('e_3') },
        { kind: 'set-status', session_id: 's_cut', status: 'done', timestamp: 2 },
        { kind: 'remember-key', key: 'k_cut', answer: { session_id: 's_cut', turn_id: 't', entry_id: 'e', digest: 'd' }, expires_at: 9e15 },
        save(after, 1),
        { kind: 'settle-step', session_id: 's_cut' },
        { kind: 'emit', event: completed('s_cut') },
      ];
      const seen: string[] = [];
      for await (const found of cutOff(prepare, writes)) {
        try {
          const process = await found.open();
          const heard: TurnEvent[] = [];
          process.hear((event) => void heard.push(event));
          const record = await process.journal.load('s_cut');
          const state = {
            entries: (await process.transcript.window('s_cut')).map((entry) => entry.id),
            first: (await process.transcript.entry('s_cut', 'e_1'))?.revision === 0 ? 'as it was' : 'changed',
            status: (await metaOf('s_cut', process))?.status,
            version: record?.version,
            key: (await process.journal.recall('k_cut')) !== null,
          };
          const absent = { entries: ['e_1'], first: 'as it was', status: 'idle', version: 1, key: false };
          const whole = { entries: ['e_1', 'e_2', 'e_3'], first: 'changed', status: 'done', version: 2, key: true };
          const isWhole = state.version === 2;
          expect(state).toEqual(isWhole ? whole : absent);
          if (isWhole) await until('the event of the commit', () => heard.length > 0);
          seen.push(isWhole ? 'whole' : 'absent');
        } finally {
          await found.dispose();
        }
      }
      expect(seen.length).toBeGreaterThan(writes.length - 2);
      expect(seen.at(-1)).toBe('whole');
      expect(seen[0]).toBe('absent');
    });
  });
}

const started = (session_id: string): TurnEvent => ({
  type: 'harness::turn-started',
  payload: { session_id, turn_id: `t_${session_id}`, timestamp: 1, depth: 0 },
});

const completed = (session_id: string): TurnEvent => ({
  type: 'harness::turn-completed',
  payload: { session_id, turn_id: `t_${session_id}`, status: 'completed', timestamp: 2, depth: 0, terminal: true },
});
