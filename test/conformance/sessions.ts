import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Entry, errorCode, type JsonValue, type MessageItem, type SessionEventType, type SessionMeta, textOf } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { until, userMessage } from './turns.js';

/** A session store behind a bus; `close` ends it and removes what it stored. */
export interface TestedSessions {
  bus: Bus;
  close(): Promise<void>;
}

const EVENTS = ['created', 'message-added', 'message-updated', 'status-changed', 'meta-updated', 'deleted'] as const;

/** What every session store must do: the `session::*` functions and their six trigger types. */
export function sessionsConformance(adapter: string, open: () => Promise<TestedSessions>): void {
  describe(`a session store: ${adapter}`, () => {
    let store: TestedSessions;
    let count = 0;
    beforeAll(async () => {
      store = await open();
    });
    afterAll(async () => await store.close());

    const call = <T>(name: string, payload: object): Promise<T> => store.bus.trigger<T>({ function_id: `session::${name}`, payload });
    const refusal = async (name: string, payload: object): Promise<string | undefined> =>
      await call(name, payload).then(
        (answer) => `answered ${JSON.stringify(answer)}`,
        (error: unknown) => errorCode(error),
      );
    const make = async (init: object = {}): Promise<string> => {
      count += 1;
      return (await call<{ session_id: string }>('ensure', { session_id: `s_conformance_${count}`, ...init })).session_id;
    };
    const add = async (session_id: string, text: string, more: object = {}): Promise<string> =>
      (await call<{ entry_id: string }>('append', { session_id, message: userMessage(text), entry_id: `e_${text}`, ...more })).entry_id;
    const page = (session_id: string, more: object = {}): Promise<{ messages: MessageItem[]; next_cursor?: string | null }> =>
      call('messages', { session_id, ...more });
    const told = (messages: readonly MessageItem[]): string =>
      messages.map(({ message, custom }) => (message === undefined ? `<${custom?.custom_type}>` : textOf(message.content))).join(' ');
    const read = async (session_id: string, more: object = {}): Promise<string> => told((await page(session_id, more)).messages);
    const entry = async (session_id: string, entry_id: string): Promise<Entry | undefined> =>
      (await call<{ entry: Entry } | null>('get-message', { session_id, entry_id }))?.entry;
    const meta = async (session_id: string): Promise<SessionMeta | undefined> =>
      (await call<{ meta: SessionMeta } | null>('get', { session_id }))?.meta;

    it('creates a session under an id of its own, and ensures one under a given id', async () => {
      const { session_id, meta: created } = await call<{ session_id: string; meta: SessionMeta }>('create', {
        title: 't',
        metadata: { a: 1 },
      });
      expect(session_id).toMatch(/^s_/);
      expect(created).toMatchObject({ session_id, title: 't', description: '', status: 'idle', metadata: { a: 1 }, message_count: 0 });
      expect(await meta(session_id)).toEqual(created);
      const given = await call<{ created: boolean }>('ensure', { session_id: 's_given', title: 'first' });
      expect(given).toMatchObject({ session_id: 's_given', created: true, meta: { title: 'first' } });
      expect(await call('ensure', { session_id: 's_given', title: 'second' })).toMatchObject({ created: false, meta: { title: 'first' } });
      expect(await call('get', { session_id: 's_none' })).toBeNull();
    });

    it('makes one session of many that ensure it at once', async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => call<{ created: boolean }>('ensure', { session_id: 's_raced' })));
      expect(answers.filter(({ created }) => created)).toHaveLength(1);
    });

    it('appends at the active leaf, or after a given parent, and an entry that is there only once', async () => {
      const id = await make();
      expect(await call('append', { session_id: id, message: userMessage('a'), entry_id: 'e_a' })).toMatchObject({ entry_id: 'e_a' });
      expect(await call('append', { session_id: id, message: userMessage('b'), entry_id: 'e_b' })).toMatchObject({ parent_id: 'e_a' });
      expect(await call('append', { session_id: id, message: userMessage('again'), entry_id: 'e_a' })).toMatchObject({ entry_id: 'e_a' });
      expect(await read(id)).toBe('a b');
      await add(id, 'c', { parent_id: 'e_a' });
      expect(await read(id)).toBe('a c');
      expect(await meta(id)).toMatchObject({ message_count: 3 });
      await call('set-active-leaf', { session_id: id, entry_id: 'e_b' });
      expect(await read(id)).toBe('a b');
    });

    it('makes ids for entries that have none', async () => {
      const id = await make();
      const { entry_id } = await call<{ entry_id: string }>('append', { session_id: id, message: userMessage('a') });
      expect(entry_id).toMatch(/^e_/);
      const many = await call<{ entry_ids: string[]; last_entry_id: string }>('append-many', {
        session_id: id,
        messages: [userMessage('b'), userMessage('c')],
      });
      expect(many.entry_ids).toHaveLength(2);
      expect(many.last_entry_id).toBe(many.entry_ids[1]);
      expect(await read(id)).toBe('a b c');
    });

    it('keeps custom entries, which are told of only when asked for', async () => {
      const id = await make();
      await add(id, 'a');
      await call('append', { session_id: id, entry_id: 'e_x', custom: { custom_type: 'mark', data: { n: [1, null] } } });
      expect(await entry(id, 'e_x')).toMatchObject({ kind: 'custom', custom_type: 'mark', data: { n: [1, null] }, parent_id: 'e_a' });
      expect(await read(id)).toBe('a');
      expect(await read(id, { include_custom: true })).toBe('a <mark>');
      expect(await meta(id)).toMatchObject({ message_count: 1 });
    });

    it('updates a message with a new revision, unless another one was expected', async () => {
      const id = await make();
      await add(id, 'a', { origin: { turn_id: 't' } });
      const content = [{ type: 'text', text: 'A' }];
      expect(await call('update-message', { session_id: id, entry_id: 'e_a', content, expected_revision: 7 })).toEqual({
        updated: false,
        revision: 0,
      });
      expect(await read(id)).toBe('a');
      expect(await call('update-message', { session_id: id, entry_id: 'e_a', content, expected_revision: 0 })).toEqual({
        updated: true,
        revision: 1,
      });
      expect(await entry(id, 'e_a')).toMatchObject({ message: { content }, revision: 1, origin: { turn_id: 't' } });
    });

    it('reads page by page, by role and after an entry', async () => {
      const id = await make();
      for (const text of ['a', 'b', 'c', 'd', 'e']) await add(id, text);
      const said = {
        role: 'assistant',
        content: [{ type: 'text', text: 'f' }],
        model: 'm',
        provider: 'p',
        stop_reason: 'end',
        timestamp: 1,
      };
      await call('append', { session_id: id, entry_id: 'e_f', message: said });
      const pages: string[] = [];
      for (let cursor: string | null | undefined = null; cursor !== undefined; ) {
        const next: Awaited<ReturnType<typeof page>> = await page(id, { limit: 2, ...(cursor === null ? {} : { cursor }) });
        pages.push(told(next.messages));
        cursor = next.next_cursor ?? undefined;
      }
      expect(pages).toEqual(['a b', 'c d', 'e f']);
      expect(await read(id, { roles: ['assistant'] })).toBe('f');
      expect(await read(id, { after_entry_id: 'e_d' })).toBe('e f');
      expect(await read(id, { from_entry_id: 'e_d' })).toBe('a b c d'); // the path that ends there
    });

    it('sets title, description, metadata and status', async () => {
      const id = await make({ title: 't', metadata: { a: 1, b: 2 } });
      expect(await call('set-meta', { session_id: id, description: 'd', metadata: { c: 3 } })).toMatchObject({
        meta: { title: 't', description: 'd', metadata: { c: 3 } },
      });
      expect(await call('set-status', { session_id: id, status: 'working', reason: 'why' })).toEqual({
        status: 'working',
        previous_status: 'idle',
      });
      expect(await meta(id)).toMatchObject({ status: 'working', status_reason: 'why' });
      await call('set-status', { session_id: id, status: 'idle' });
      expect((await meta(id))?.status_reason ?? null).toBeNull();
    });

    it('lists sessions in order, by status and by metadata', async () => {
      const mark = { list: 'this one' };
      const [one, two, three] = [
        await make({ metadata: mark }),
        await make({ metadata: { ...mark, more: 1 } }),
        await make({ metadata: mark }),
      ];
      const { updated_at = 0 } = (await meta(three)) ?? {};
      await until('another millisecond', () => Date.now() > updated_at);
      await call('set-status', { session_id: two, status: 'done' });
      const list = async (more: object): Promise<string[]> =>
        (await call<{ sessions: SessionMeta[] }>('list', { metadata: mark, ...more })).sessions.map(({ session_id }) => session_id);
      expect(await list({ order: 'created_asc' })).toEqual([one, two, three]);
      expect(await list({ order: 'created_desc' })).toEqual([three, two, one]);
      expect((await list({}))[0]).toBe(two);
      expect(await list({ status: 'done' })).toEqual([two]);
      expect(await list({ metadata: { ...mark, more: 1 } })).toEqual([two]);
      const first = await call<{ sessions: SessionMeta[]; next_cursor: string }>('list', {
        metadata: mark,
        order: 'created_asc',
        limit: 2,
      });
      expect(first.sessions).toHaveLength(2);
      expect(await list({ order: 'created_asc', limit: 2, cursor: first.next_cursor })).toEqual([three]);
    });

    it('forks a conversation up to an entry, under new ids', async () => {
      const id = await make({ title: 'source' });
      for (const text of ['a', 'b', 'c']) await add(id, text);
      const fork = await call<{ session_id: string; meta: SessionMeta }>('fork', { session_id: id, entry_id: 'e_b', title: 'copy' });
      expect(fork.meta).toMatchObject({ title: 'copy', forked_from: id, message_count: 2 });
      expect(await read(fork.session_id)).toBe('a b');
      expect((await page(fork.session_id)).messages.map(({ entry_id }) => entry_id)).not.toContain('e_a');
      await add(fork.session_id, 'd');
      expect(await read(id)).toBe('a b c');
    });

    it('deletes a session with all that it has', async () => {
      const id = await make();
      await add(id, 'a');
      expect(await call('delete', { session_id: id })).toEqual({ deleted: true });
      expect(await call('delete', { session_id: id })).toEqual({ deleted: false });
      expect(await meta(id)).toBeUndefined();
      await make({ session_id: id });
      expect(await read(id)).toBe('');
    });

    it.each([
      ['session/not_found', 'append', { session_id: 's_none', message: userMessage('a') }],
      ['session/not_found', 'messages', { session_id: 's_none' }],
      ['session/not_found', 'set-status', { session_id: 's_none', status: 'done' }],
      ['session/entry_not_found', 'update-message', { session_id: 's_given', entry_id: 'e_none', content: [] }],
      ['session/entry_not_found', 'fork', { session_id: 's_given', entry_id: 'e_none' }],
      ['session/parent_not_found', 'append', { session_id: 's_given', message: userMessage('a'), parent_id: 'e_none' }],
      ['session/empty_batch', 'append-many', { session_id: 's_given', messages: [] }],
      ['session/invalid_cursor', 'messages', { session_id: 's_given', after_entry_id: 'e_none' }],
      ['session/invalid_request', 'append', { session_id: 's_given' }],
      ['session/invalid_request', 'set-status', { session_id: 's_given', status: 'asleep' }],
    ])('refuses with %s: %s', async (code, name, payload) => {
      await call('ensure', { session_id: 's_given' });
      await add('s_given', 'a');
      expect(await refusal(name, payload)).toBe(code);
    });

    it('tells of each change by its event, and of no change by none', async () => {
      const id = `s_told_${Date.now()}`;
      const heard = await listening(store.bus, 'told', { session_id: id });
      const created = await listening(store.bus, 'told-created', { metadata: { told: id } }, ['created']);
      await call('ensure', { session_id: id, title: 't', metadata: { told: id } });
      await call('ensure', { session_id: id });
      await add(id, 'a', { origin: { turn_id: 't' } });
      await add(id, 'a');
      await call('append', { session_id: id, entry_id: 'e_x', custom: { custom_type: 'mark', data: 1 } });
      const content = [{ type: 'text', text: 'A' }];
      await call('update-message', { session_id: id, entry_id: 'e_a', content });
      await call('update-message', { session_id: id, entry_id: 'e_a', content, expected_revision: 9 });
      await call('set-status', { session_id: id, status: 'working', reason: 'why' });
      await call('set-status', { session_id: id, status: 'working', reason: 'why' });
      await call('set-meta', { session_id: id, title: 'T' });
      await call('set-draft', { session_id: id, draft: 'not told' });
      await call('delete', { session_id: id });
      await call('delete', { session_id: id });
      await until('the last event', () => heard.events.some(({ type }) => type === 'deleted'));
      await until('the first event', () => created.events.length > 0);
      const timestamp = expect.any(Number) as number;
      // At least once and in any order, as the contract has it: what counts is which there are.
      const distinct = [...new Map(heard.events.map((event) => [JSON.stringify(event), event])).values()];
      const of = (type: string): JsonValue[] => distinct.filter((event) => event.type === type).map(({ payload }) => payload);
      expect(created.events[0]?.payload).toMatchObject({ session_id: id, title: 't', status: 'idle', created_at: timestamp });
      expect(of('message-added')).toHaveLength(2);
      expect(of('message-added')).toContainEqual({
        session_id: id,
        entry_id: 'e_a',
        parent_id: null,
        message: userMessage('a'),
        origin: { turn_id: 't' },
        timestamp,
      });
      expect(of('message-added')).toContainEqual(expect.objectContaining({ entry_id: 'e_x', custom: { custom_type: 'mark', data: 1 } }));
      expect(of('message-updated')).toEqual([
        expect.objectContaining({ entry_id: 'e_a', revision: 1, message: { ...userMessage('a'), content } }),
      ]);
      expect(of('status-changed')).toEqual([
        { session_id: id, status: 'working', previous_status: 'idle', status_reason: 'why', timestamp },
      ]);
      expect(of('meta-updated')).toEqual([expect.objectContaining({ session_id: id, title: 'T' })]);
      expect(of('deleted')).toEqual([{ session_id: id, timestamp }]);
      heard.leave();
      created.leave();
    });

    it('tells only what a binding asks for: a session, roles, metadata', async () => {
      const [mine, other] = [await make({ metadata: { tenant: 'x' } }), await make({ metadata: { tenant: 'y' } })];
      const bySession = await listening(store.bus, 'by-session', { session_id: mine }, ['message-added']);
      const byRole = await listening(store.bus, 'by-role', { session_id: mine, roles: ['assistant'] }, ['message-added']);
      const byTenant = await listening(store.bus, 'by-tenant', { metadata: { tenant: 'y' } }, ['message-added']);
      await add(mine, 'a');
      await add(other, 'b');
      const said = { role: 'assistant', content: [], model: 'm', provider: 'p', stop_reason: 'end', timestamp: 1 };
      await call('append', { session_id: mine, entry_id: 'e_said', message: said });
      const ids = ({ events }: { events: Heard[] }): string[] =>
        [...new Set(events.map(({ payload }) => (payload as { entry_id: string }).entry_id))].sort();
      await until('the events', () => ids(bySession).length === 2 && ids(byRole).length === 1 && ids(byTenant).length === 1);
      expect([ids(bySession), ids(byRole), ids(byTenant)]).toEqual([['e_a', 'e_said'], ['e_said'], ['e_b']]);
      for (const binding of [bySession, byRole, byTenant]) binding.leave();
    });
  });
}

interface Heard {
  type: string;
  payload: JsonValue;
}

/** Binds a function to events of sessions, and waits until the engine knows of it. */
async function listening(
  bus: Bus,
  name: string,
  config: JsonValue,
  types: readonly (typeof EVENTS)[number][] = EVENTS.filter((type) => type !== 'created'),
): Promise<{ events: Heard[]; leave(): void }> {
  const events: Heard[] = [];
  const registrations = types.flatMap((type) => {
    const function_id = `conformance-${name}::${type}`;
    const registration = bus.registerFunction({ id: function_id }, (payload) => {
      events.push({ type, payload: payload as JsonValue });
      return null;
    });
    return [registration, bus.registerTrigger({ type: `session::${type}` satisfies SessionEventType, function_id, config })];
  });
  await until('the bindings', async () => {
    const payload = { search: `conformance-${name}::` };
    const found = await bus.trigger<{ registered_triggers: unknown[] }>({ function_id: 'engine::registered-triggers::list', payload });
    return found.registered_triggers.length === types.length;
  });
  return {
    events,
    leave: () => {
      for (const registration of registrations) registration.unregister();
    },
  };
}
