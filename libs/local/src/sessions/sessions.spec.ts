import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Entry, MessageItem, SessionMeta } from '#libs/contracts';
import { newDataDir, openTestStore, removeDataDir, type TestStore, userMessage } from '../../../../test/support/store.js';
import { LINE_AFTER } from './path.js';
import { SessionsModule } from './sessions.module.js';

interface Page {
  messages: MessageItem[];
  next_cursor?: string;
}
type Tail = Page & { has_more: boolean; oldest_entry_id?: string };

const dataDir = newDataDir();
let one: TestStore;

beforeAll(async () => {
  one = await openTestStore([SessionsModule], dataDir);
});
afterAll(async () => {
  await one.close();
  removeDataDir(dataDir);
});

const call = <T>(name: string, payload: object): Promise<T> => one.call<T>(`session::${name}`, payload);
const make = async (init: object = {}): Promise<string> => (await call<{ session_id: string }>('create', init)).session_id;
const add = async (session_id: string, text: string, more: object = {}): Promise<string> =>
  (await call<{ entry_id: string }>('append', { session_id, message: userMessage(text), ...more })).entry_id;
const textsOf = (messages: MessageItem[]): string[] =>
  messages.map(({ message, custom }) =>
    custom === undefined ? (message?.content.map((b) => (b.type === 'text' ? b.text : b.type)).join('+') ?? '') : `<${custom.custom_type}>`,
  );
const read = async (session_id: string, more: object = {}): Promise<string[]> =>
  textsOf((await call<Page>('messages', { session_id, ...more })).messages);
const assistant = (...content: object[]): object => ({
  role: 'assistant',
  content,
  model: 'm',
  provider: 'p',
  stop_reason: 'end',
  timestamp: 1,
});
const functionCall = (id: string): object => ({ type: 'function_call', id, function_id: 'x::y', arguments: { big: 'argument' } });
const result = (id: string): object => ({
  role: 'function_result',
  function_call_id: id,
  function_id: 'x::y',
  content: [{ type: 'text', text: 'result' }],
  timestamp: 1,
});

/** What a reader without any cache sees must be what this process's transcript says. */
async function expectTranscriptInStep(session_id: string): Promise<void> {
  const cached = await one.store.transcript.window(session_id);
  const stored: Entry[] = [];
  for (const item of (await call<Page>('messages', { session_id, include_custom: true, limit: 500 })).messages) {
    const found = await call<{ entry: Entry }>('get-message', { session_id, entry_id: item.entry_id });
    stored.push(found.entry);
  }
  expect(cached).toEqual(stored);
}

describe('sessions as wholes', () => {
  it('creates, ensures and gets', async () => {
    const created = await call<{ session_id: string; meta: SessionMeta }>('create', { title: 'a', metadata: { owner: 'u' } });
    expect(created.session_id).toMatch(/^s_/);
    expect(await call('get', { session_id: created.session_id })).toEqual({ meta: created.meta });
    expect(created.meta).toMatchObject({ title: 'a', description: '', status: 'idle', metadata: { owner: 'u' }, message_count: 0 });
    expect(await call('get', { session_id: 'none' })).toBeNull();
    const first = await call<object>('ensure', { session_id: 'chosen:1', title: 't' });
    expect(first).toMatchObject({ created: true, session_id: 'chosen:1', meta: { title: 't' } });
    expect(await call('ensure', { session_id: 'chosen:1', title: 'other' })).toMatchObject({ created: false, meta: { title: 't' } });
    await expect(call('ensure', { session_id: '' })).rejects.toThrow(/^session\/invalid_request: session_id/);
  });

  it('makes one session of many concurrent ensures, also from another process', async () => {
    const two = await openTestStore([SessionsModule], dataDir);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? one : two).call<{ created: boolean }>('session::ensure', { session_id: 'raced' }),
      ),
    );
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    await two.close();
  });

  it('replaces metadata whole and keeps what is absent', async () => {
    const session_id = await make({ title: 'a', description: 'd', metadata: { x: 1, y: 2 } });
    expect(await call('set-meta', { session_id, metadata: { z: 3 } })).toMatchObject({
      meta: { title: 'a', description: 'd', metadata: { z: 3 } },
    });
    expect(await call('set-meta', { session_id, title: '' })).toMatchObject({ meta: { title: '', metadata: { z: 3 } } });
    await expect(call('set-meta', { session_id: 'none' })).rejects.toThrow('session/not_found: ');
  });

  it('keeps a reason until idle', async () => {
    const session_id = await make();
    expect(await call('set-status', { session_id, status: 'working', reason: 'tool' })).toEqual({
      status: 'working',
      previous_status: 'idle',
    });
    expect(await call('get', { session_id })).toMatchObject({ meta: { status: 'working', status_reason: 'tool' } });
    await call('set-status', { session_id, status: 'idle', reason: 'ignored' });
    expect((await call<{ meta: SessionMeta }>('get', { session_id })).meta.status_reason).toBeUndefined();
    await expect(call('set-status', { session_id, status: 'lazy' })).rejects.toThrow('session/invalid_request: status');
  });

  it('keeps a draft without a trace elsewhere', async () => {
    const session_id = await make();
    const before = (await call<{ meta: SessionMeta }>('get', { session_id })).meta;
    expect(await call('set-draft', { session_id, draft: 'half a th' })).toEqual({ draft: 'half a th', attachments: [] });
    expect((await call<{ meta: SessionMeta }>('get', { session_id })).meta).toEqual({ ...before, draft: 'half a th' });
    expect(await call('set-draft', { session_id, draft: '  ' })).toEqual({ draft: null, attachments: [] });
    await expect(call('set-draft', { session_id, attachment_ids: ['a_1'] })).rejects.toThrow('session/invalid_request: attachment_ids');
  });

  it('lists by order, status and metadata, in pages that fit together', async () => {
    const made: string[] = [];
    for (let i = 0; i < 12; i += 1) made.push(await make({ metadata: { list: 'this', even: i % 2 === 0, deep: { a: [i % 2] } } }));
    const list = async (query: object): Promise<string[]> => {
      const found: string[] = [];
      for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
        const page: { sessions: SessionMeta[]; next_cursor?: string } = await call('list', {
          limit: 5,
          metadata: { list: 'this' },
          ...query,
          ...(cursor === undefined ? {} : { cursor }),
        });
        expect(page.sessions.length).toBeLessThanOrEqual(5);
        found.push(...page.sessions.map((s) => s.session_id));
        cursor = page.next_cursor;
      }
      return found;
    };
    expect(await list({ order: 'created_asc' })).toEqual(made);
    expect(await list({ order: 'created_desc' })).toEqual([...made].reverse());
    expect(await list({ order: 'created_asc', metadata: { list: 'this', even: true } })).toEqual(made.filter((_, i) => i % 2 === 0));
    expect(await list({ order: 'created_asc', metadata: { list: 'this', deep: { a: [1] } } })).toEqual(made.filter((_, i) => i % 2 === 1));
    expect(await list({ metadata: { list: 'this', even: 'true' } })).toEqual([]);
    await add(made[3] ?? '', 'newest');
    await call('set-status', { session_id: made[3], status: 'error', reason: 'r' });
    const updated = await list({});
    expect(updated[0]).toBe(made[3]);
    expect([...updated].sort()).toEqual([...made].sort());
    expect(await list({ status: 'error' })).toEqual([made[3]]);
    const { next_cursor } = await call<{ next_cursor?: string }>('list', { limit: 1, order: 'created_asc' });
    await expect(call('list', { cursor: next_cursor })).rejects.toThrow('session/invalid_cursor: ');
    await expect(call('list', { cursor: 'nonsense' })).rejects.toThrow('session/invalid_cursor: ');
    expect((await call<{ sessions: unknown[] }>('list', { limit: 0 })).sessions).toHaveLength(1);
  });

  it('forks a path under new ids and leaves the source alone', async () => {
    const session_id = await make({ title: 'source', metadata: { owner: 'u' } });
    const a = await add(session_id, 'a', { origin: { turn_id: 't' } });
    await call('append', { session_id, custom: { custom_type: 'mark', data: { n: 1 } } });
    const b = await add(session_id, 'b');
    await add(session_id, 'c');
    await add(session_id, 'b2', { parent_id: a });
    const forked = await call<{ session_id: string; meta: SessionMeta }>('fork', { session_id, entry_id: b });
    expect(forked.meta).toMatchObject({
      title: 'source',
      metadata: { owner: 'u' },
      forked_from: session_id,
      message_count: 2,
      status: 'idle',
    });
    expect(await read(forked.session_id, { include_custom: true })).toEqual(['a', '<mark>', 'b']);
    const items = (await call<Page>('messages', { session_id: forked.session_id })).messages;
    expect(items[0]).toMatchObject({ origin: { turn_id: 't' } });
    expect(items.map((item) => item.entry_id)).not.toContain(a);
    await add(forked.session_id, 'd');
    expect(await read(forked.session_id)).toEqual(['a', 'b', 'd']);
    expect(await read(session_id)).toEqual(['a', 'b2']);
    expect(await call('fork', { session_id, entry_id: b, title: 'own' })).toMatchObject({ meta: { title: 'own' } });
    await expect(call('fork', { session_id, entry_id: 'none' })).rejects.toThrow('session/entry_not_found: ');
    await expect(call('fork', { session_id: 'none', entry_id: b })).rejects.toThrow('session/not_found: ');
    await expectTranscriptInStep(forked.session_id);
  });

  it('forks a session of thousands of entries whole', async () => {
    const session_id = await make();
    await call('append-many', { session_id, messages: Array.from({ length: 2_100 }, (_, i) => userMessage(`${i}`)) });
    const window = await one.store.transcript.window(session_id);
    const forked = await call<{ session_id: string; meta: SessionMeta }>('fork', { session_id, entry_id: window.at(-1)?.id });
    expect(forked.meta.message_count).toBe(2_100);
    expect((await read(forked.session_id, { limit: 500 })).slice(0, 3)).toEqual(['0', '1', '2']);
    expect(await one.store.transcript.window(forked.session_id)).toHaveLength(2_100);
  });
});

describe('delete', () => {
  const liveTurn = (session_id: string, status: string): void => {
    one.store.db
      .prepare("INSERT OR REPLACE INTO turns (session_id, turn_id, version, status, record) VALUES (?, 't_1', 1, ?, '{}')")
      .run(session_id, status);
  };

  it('takes everything of the session along', async () => {
    const session_id = await make();
    await add(session_id, 'a');
    liveTurn(session_id, 'completed');
    one.store.db.prepare("INSERT INTO parked (session_id, entry_id, body) VALUES (?, 'e', '{}')").run(session_id);
    await one.store.transcript.window(session_id);
    expect(await call('delete', { session_id })).toEqual({ deleted: true });
    expect(await call('delete', { session_id })).toEqual({ deleted: false });
    expect(await call('get', { session_id })).toBeNull();
    for (const table of ['parked', 'turns'])
      expect(one.store.db.prepare(`SELECT * FROM ${table} WHERE session_id = ?`).all(session_id)).toEqual([]);
    expect(one.store.db.prepare('SELECT * FROM entries WHERE sid NOT IN (SELECT sid FROM sessions)').all()).toEqual([]);
    expect(await one.store.transcript.window(session_id)).toEqual([]);
    await expect(add(session_id, 'late')).rejects.toThrow('session/not_found: ');
  });

  it('is refused while a turn is not over', async () => {
    for (const status of ['running', 'awaiting_functions']) {
      const session_id = await make();
      liveTurn(session_id, status);
      await expect(call('delete', { session_id })).rejects.toThrow(/^session\/turn_live: .*harness::stop/);
      expect(await call('get', { session_id })).not.toBeNull();
    }
  });

  it('leaves nothing in a cache for a later session of the same id', async () => {
    const two = await openTestStore([SessionsModule], dataDir);
    for (let round = 0; round < 2; round += 1) {
      await call('ensure', { session_id: 'again' });
      await add('again', `round ${round}`);
      expect((await two.store.transcript.window('again')).map((e) => e.kind === 'message' && e.message.content)).toEqual([
        [{ type: 'text', text: `round ${round}` }],
      ]);
      await call('delete', { session_id: 'again' });
    }
    await two.close();
  });
});

describe('appending', () => {
  it('is idempotent on a given entry id', async () => {
    const session_id = await make();
    const first = await call<object>('append', { session_id, entry_id: 'mine', message: userMessage('a') });
    await add(session_id, 'b');
    expect(await call('append', { session_id, entry_id: 'mine', message: userMessage('changed') })).toEqual(first);
    expect(await read(session_id)).toEqual(['a', 'b']);
    const meta = (await call<{ meta: SessionMeta }>('get', { session_id })).meta;
    expect(meta.message_count).toBe(2);
  });

  it('chains a batch, all or none', async () => {
    const session_id = await make();
    const batch = await call<{ entry_ids: string[]; last_entry_id: string }>('append-many', {
      session_id,
      messages: ['a', 'b', 'c'].map(userMessage),
      origin: { turn_id: 't' },
    });
    expect(batch.last_entry_id).toBe(batch.entry_ids[2]);
    expect(await call('get-message', { session_id, entry_id: batch.entry_ids[1] })).toMatchObject({
      entry: { parent_id: batch.entry_ids[0], origin: { turn_id: 't' }, revision: 0 },
    });
    await expect(call('append-many', { session_id, messages: [] })).rejects.toThrow('session/empty_batch: ');
    await expect(call('append-many', { session_id, messages: [userMessage('d')], parent_id: 'none' })).rejects.toThrow(
      'session/parent_not_found: ',
    );
    expect(await read(session_id)).toEqual(['a', 'b', 'c']);
  });

  it('refuses what is not exactly one message or custom payload', async () => {
    const session_id = await make();
    const custom = { custom_type: 'mark' };
    for (const body of [{}, { message: null, custom: null }, { message: userMessage('a'), custom }]) {
      await expect(call('append', { session_id, ...body })).rejects.toThrow('session/invalid_request: exactly one');
    }
    await expect(call('append', { session_id, message: { role: 'user', content: [{ type: 'text' }], timestamp: 1 } })).rejects.toThrow(
      /^session\/invalid_request: message\.content\.0\.text is missing/,
    );
    await expect(call('append', { session_id: 'none', custom })).rejects.toThrow('session/not_found: ');
    await expect(call('append', { session_id, custom, parent_id: 'none' })).rejects.toThrow('session/parent_not_found: ');
  });

  it('fills in what a message may lack, and keeps opaque thinking and ill-formed text readable', async () => {
    const session_id = await make();
    const { entry_id } = await call<{ entry_id: string }>('append', { session_id, message: result('c1') });
    expect(await call('get-message', { session_id, entry_id })).toMatchObject({ entry: { message: { details: null, is_error: false } } });
    const opaque = { type: 'redacted_thinking', data: 'AAA=' };
    const odd = await call<{ entry_id: string }>('append', {
      session_id,
      message: assistant(opaque, { type: 'text', text: 'a\ud800b' }, { type: 'function_call', id: 'c', function_id: 'f' }),
    });
    expect(await call('get-message', { session_id, entry_id: odd.entry_id })).toMatchObject({
      entry: { message: { content: [opaque, { type: 'text', text: 'a\ufffdb' }, { type: 'function_call', arguments: null }] } },
    });
    expect(await call('get-message', { session_id, entry_id: 'none' })).toBeNull();
    expect(await call('get-message', { session_id: 'none', entry_id })).toBeNull();
  });
});

describe('updating', () => {
  it('raises the revision, and writes nothing for another expected one', async () => {
    const session_id = await make();
    const { entry_id } = await call<{ entry_id: string }>('append', { session_id, message: assistant(), origin: { turn_id: 't' } });
    const content = [{ type: 'text', text: 'x' }];
    expect(await call('update-message', { session_id, entry_id, content, expected_revision: 0, usage: { input: 3 } })).toEqual({
      updated: true,
      revision: 1,
    });
    expect(await call('update-message', { session_id, entry_id, content: [], expected_revision: 0 })).toEqual({
      updated: false,
      revision: 1,
    });
    expect(await call('get-message', { session_id, entry_id })).toMatchObject({
      entry: { revision: 1, origin: { turn_id: 't' }, message: { content, usage: { input: 3 }, stop_reason: 'end' } },
    });
    expect(await call('update-message', { session_id, entry_id, content, origin: { turn_id: 'u' } })).toEqual({
      updated: true,
      revision: 2,
    });
    expect(await call('get-message', { session_id, entry_id })).toMatchObject({
      entry: { origin: { turn_id: 'u' }, message: { usage: { input: 3 } } },
    });
  });

  it('names what an entry does not take', async () => {
    const session_id = await make();
    const custom = await call<{ entry_id: string }>('append', { session_id, custom: { custom_type: 'mark' } });
    const user = await add(session_id, 'a');
    const { entry_id: res } = await call<{ entry_id: string }>('append', { session_id, message: result('c') });
    await expect(call('update-message', { session_id, entry_id: custom.entry_id, content: [] })).rejects.toThrow(
      'session/invalid_entry_kind: ',
    );
    await expect(call('update-message', { session_id, entry_id: user, content: [], details: 1 })).rejects.toThrow(
      'session/details_not_supported: ',
    );
    await expect(call('update-message', { session_id, entry_id: res, content: [], usage: {} })).rejects.toThrow(
      'session/invalid_request: usage',
    );
    await expect(call('update-message', { session_id, entry_id: 'none', content: [] })).rejects.toThrow('session/entry_not_found: ');
    expect(await call('update-message', { session_id, entry_id: res, content: [], details: { a: 1 } })).toEqual({
      updated: true,
      revision: 1,
    });
  });
});

describe('branches', () => {
  it('appends anywhere and reads the active path or another one', async () => {
    const session_id = await make();
    const [a, b, c] = [await add(session_id, 'a'), await add(session_id, 'b'), await add(session_id, 'c')];
    const b2 = await add(session_id, 'b2', { parent_id: a });
    await add(session_id, 'c2');
    expect(await read(session_id)).toEqual(['a', 'b2', 'c2']);
    expect(await read(session_id, { from_entry_id: c })).toEqual(['a', 'b', 'c']);
    await expectTranscriptInStep(session_id);
    expect(await call('set-active-leaf', { session_id, entry_id: b })).toEqual({ active_leaf: b });
    expect(await read(session_id)).toEqual(['a', 'b']);
    await expectTranscriptInStep(session_id);
    await add(session_id, 'c3');
    expect(await read(session_id)).toEqual(['a', 'b', 'c3']);
    await expectTranscriptInStep(session_id);
    expect(await read(session_id, { after_entry_id: a })).toEqual(['b', 'c3']);
    await expect(read(session_id, { after_entry_id: b2 })).rejects.toThrow('session/invalid_cursor: ');
    await expect(read(session_id, { after_entry_id: 'none' })).rejects.toThrow('session/invalid_cursor: ');
    await expect(read(session_id, { from_entry_id: 'none' })).rejects.toThrow('session/entry_not_found: ');
    await expect(call('set-active-leaf', { session_id, entry_id: 'none' })).rejects.toThrow('session/entry_not_found: ');
    expect((await call<{ meta: SessionMeta }>('get', { session_id })).meta.message_count).toBe(6);
  });

  it('shortens a line by moving its leaf, and keeps a running reading on its path', async () => {
    const session_id = await make();
    const { entry_ids } = await call<{ entry_ids: string[] }>('append-many', {
      session_id,
      messages: Array.from({ length: 9 }, (_, i) => userMessage(`${i}`)),
    });
    await one.store.transcript.window(session_id);
    const first = await call<Page>('messages', { session_id, limit: 4 });
    await call('set-active-leaf', { session_id, entry_id: entry_ids[5] });
    expect(await read(session_id)).toEqual(['0', '1', '2', '3', '4', '5']);
    await expectTranscriptInStep(session_id);
    expect(await read(session_id, { cursor: first.next_cursor })).toEqual(['4', '5', '6', '7', '8']);
    await expect(read(await make(), { cursor: first.next_cursor })).rejects.toThrow('session/invalid_cursor: ');
  });
});

describe('the transcript of this process', () => {
  it('follows appends and updates that come over the bus', async () => {
    const session_id = await make();
    const a = await add(session_id, 'a');
    const window = await one.store.transcript.window(session_id);
    await Promise.all([
      add(session_id, 'b'),
      add(session_id, 'c'),
      call('append', { session_id, custom: { custom_type: 'mark', data: 1 } }),
    ]);
    expect(await one.store.transcript.window(session_id)).toBe(window); // kept, not read again
    await expectTranscriptInStep(session_id);
    await call('update-message', { session_id, entry_id: a, content: [{ type: 'text', text: 'a!' }] });
    await expectTranscriptInStep(session_id);
  });

  it('sees what another process wrote, and goes on from there', async () => {
    const session_id = await make();
    await add(session_id, 'a');
    await one.store.transcript.window(session_id);
    const two = await openTestStore([SessionsModule], dataDir);
    await two.call('session::append', { session_id, message: userMessage('b') });
    await expectTranscriptInStep(session_id);
    await add(session_id, 'c');
    await expectTranscriptInStep(session_id);
    await two.store.transcript.window(session_id);
    await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? one : two).call('session::append', { session_id, message: userMessage(`${i}`) })),
    );
    await expectTranscriptInStep(session_id);
    expect(await two.store.transcript.window(session_id)).toEqual(await one.store.transcript.window(session_id));
    expect(await read(session_id, { limit: 500 })).toHaveLength(43);
    await two.close();
  });
});

describe('reading', () => {
  let session_id: string;
  let ids: string[];
  beforeAll(async () => {
    session_id = await make();
    ids = (
      await call<{ entry_ids: string[] }>('append-many', {
        session_id,
        messages: Array.from({ length: 2_000 }, (_, i) => (i % 10 === 0 ? userMessage(`${i}`) : assistant({ type: 'text', text: `${i}` }))),
      })
    ).entry_ids;
  });
  const all = async (query: object): Promise<{ texts: string[]; pages: number }> => {
    const texts: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page: Page = await call('messages', { session_id, ...query, ...(cursor === undefined ? {} : { cursor }) });
      texts.push(...textsOf(page.messages));
      pages += 1;
      cursor = page.next_cursor;
    }
    return { texts, pages };
  };
  const numbers = (keep: (i: number) => boolean): string[] =>
    Array.from({ length: 2_000 }, (_, i) => i)
      .filter(keep)
      .map(String);

  it('pages 2000 entries with limits of 50 by default and 500 at most', async () => {
    expect(await all({})).toEqual({ texts: numbers(() => true), pages: 40 });
    expect(await all({ limit: 9_999 })).toEqual({ texts: numbers(() => true), pages: 4 });
    expect(await all({ limit: 30, roles: ['user'] })).toEqual({ texts: numbers((i) => i % 10 === 0), pages: 7 });
    expect((await all({ after_entry_id: ids[1_990] })).texts).toEqual(numbers((i) => i > 1_990));
    expect((await all({ from_entry_id: ids[119], limit: 100 })).texts).toEqual(numbers((i) => i <= 119));
  });

  it('reads a page with work that does not grow with the history', async () => {
    const plan = one.store.db
      .prepare(`EXPLAIN QUERY PLAN ${LINE_AFTER}`)
      .all({ sid: 1, after: 1, end: 1, limit: 1, roles: null, custom: 0 }) as { detail: string }[];
    expect(plan[0]?.detail).toBe('SEARCH entries USING PRIMARY KEY (sid=? AND seq>? AND seq<?)');
    expect(plan.map((step) => step.detail).join()).not.toContain('TEMP B-TREE FOR ORDER BY');
  });

  it('gives the same pages once the session has branches', async () => {
    await add(session_id, 'off', { parent_id: ids[3] });
    expect((await all({ limit: 500 })).texts).toEqual(['0', '1', '2', '3', 'off']);
    await call('set-active-leaf', { session_id, entry_id: ids[1_999] });
    expect(await all({})).toEqual({ texts: numbers(() => true), pages: 40 });
    expect(await all({ limit: 30, roles: ['user'] })).toEqual({ texts: numbers((i) => i % 10 === 0), pages: 7 });
  });

  it('leaves out the data of images that are attachments, when asked', async () => {
    const session = await make();
    const image = { type: 'image', data: 'QUJD', mime: 'image/png' };
    await call('append', {
      session_id: session,
      message: { role: 'user', content: [image, { ...image, attachment_id: 'a_1' }], timestamp: 1 },
    });
    const shown = (await call<Page>('messages', { session_id: session, include_image_data: false })).messages[0]?.message?.content;
    expect(shown).toEqual([image, { ...image, attachment_id: 'a_1', data: '' }]);
    expect((await call<Page>('messages', { session_id: session })).messages[0]?.message?.content[1]).toMatchObject({ data: 'QUJD' });
  });

  it('hides custom entries unless asked, and always beside roles', async () => {
    const session = await make();
    await add(session, 'a');
    await call('append', { session_id: session, custom: { custom_type: 'mark', data: [1] }, origin: { turn_id: 't' } });
    expect(await read(session)).toEqual(['a']);
    expect(await read(session, { include_custom: true })).toEqual(['a', '<mark>']);
    expect(await read(session, { include_custom: true, roles: ['user'] })).toEqual(['a']);
    expect((await call<Page>('messages', { session_id: session, include_custom: true })).messages[1]).toEqual({
      entry_id: expect.any(String),
      custom: { custom_type: 'mark', data: [1] },
    });
    await expect(read('none')).rejects.toThrow('session/not_found: ');
    expect(await read(await make())).toEqual([]);
  });
});

describe('tail and range', () => {
  let session_id: string;
  const ids: { [name: string]: string } = {};
  beforeAll(async () => {
    session_id = await make();
    const put = async (name: string, body: object): Promise<void> => {
      ids[name] = (await call<{ entry_id: string }>('append', { session_id, ...body })).entry_id;
    };
    await put('ask', { message: userMessage('ask') });
    await put('call', {
      message: assistant({ type: 'thinking', text: 'hm' }, { type: 'text', text: 'doing' }, functionCall('c1'), {
        type: 'function_call',
        id: 'c2',
        function_id: 'agent_trigger',
        arguments: { function: 'x::y', description: 'does', payload: { big: 1 } },
      }),
    });
    await put('r1', { message: result('c1') });
    await put('r2', { message: result('c2') });
    await put('call2', { message: assistant(functionCall('c3')) });
    await put('r3', { message: result('c3') });
    await put('answer', { message: assistant({ type: 'thinking', text: 'so' }, { type: 'text', text: 'answer' }) });
    await put('mark', { custom: { custom_type: 'mark' } });
    await put('bye', { message: userMessage('bye') });
  });
  const tail = (query: object): Promise<Tail> => call<Tail>('messages-tail', { session_id, ...query });
  const named = (page: Page): (string | undefined)[] =>
    page.messages.map((item) => Object.keys(ids).find((name) => ids[name] === item.entry_id));

  it('counts a run of work as one block and leaves out its heavy parts', async () => {
    const page = await tail({ limit: 4 });
    expect(named(page)).toEqual(['call', 'r1', 'r2', 'call2', 'r3', 'answer', 'mark', 'bye']);
    expect(page).toMatchObject({ has_more: true, oldest_entry_id: ids['call'] });
    const [first, second] = page.messages;
    expect(first).toMatchObject({
      elided: true,
      message: {
        content: [
          { type: 'text', text: 'doing' },
          { id: 'c1', arguments: {} },
          { id: 'c2', arguments: { function: 'x::y', description: 'does' } },
        ],
      },
    });
    expect(first?.message?.content[2]).not.toHaveProperty('arguments.payload');
    expect(second).toMatchObject({ elided: true, message: { function_call_id: 'c1', is_error: false, content: [], details: null } });
    expect(page.messages[5]).toMatchObject({ message: { content: [{ type: 'thinking' }, { text: 'answer' }] } });
    expect(page.messages[5]?.elided).toBeUndefined();
  });

  it('goes back page by page, and never splits a run', async () => {
    const last = await tail({ limit: 3 });
    expect(named(last)).toEqual(['answer', 'mark', 'bye']);
    const before = await tail({ limit: 1, before_entry_id: last.oldest_entry_id });
    expect(named(before)).toEqual(['call', 'r1', 'r2', 'call2', 'r3']);
    const root = await tail({ before_entry_id: before.oldest_entry_id });
    expect(named(root)).toEqual(['ask']);
    expect(root.has_more).toBe(false);
    expect(named(await tail({ before_entry_id: ids['r2'] }))).toEqual(['ask']);
    expect(await tail({ before_entry_id: ids['ask'] })).toEqual({ messages: [], has_more: false });
  });

  it('reaches back to an entry, with or without custom entries', async () => {
    expect(named(await tail({ limit: 1, until_entry_id: ids['r2'] }))[0]).toBe('call');
    expect(named(await tail({ limit: 2, until_entry_id: ids['bye'] }))).toEqual(['mark', 'bye']);
    expect(named(await tail({ limit: 2, include_custom: false }))).toEqual(['answer', 'bye']);
    await expect(tail({ before_entry_id: 'none' })).rejects.toThrow('session/invalid_cursor: ');
    await expect(tail({ until_entry_id: 'none' })).rejects.toThrow('session/invalid_cursor: ');
    expect(await call('messages-tail', { session_id: await make() })).toEqual({ messages: [], has_more: false });
  });

  it('gives whole entries of a range or of ids, in pages', async () => {
    const range = (query: object): Promise<Page> => call<Page>('messages-range', { session_id, ...query });
    const first = await range({ from_entry_id: ids['call'], to_entry_id: ids['answer'], limit: 4 });
    expect(named(first)).toEqual(['call', 'r1', 'r2', 'call2']);
    expect(first.messages[0]?.message?.content).toHaveLength(4);
    const rest = await range({ from_entry_id: ids['call'], to_entry_id: ids['answer'], limit: 4, cursor: first.next_cursor });
    expect(named(rest)).toEqual(['r3', 'answer']);
    expect(rest.next_cursor).toBeUndefined();
    expect(named(await range({ entry_ids: [ids['mark'], ids['ask'], ids['mark']] }))).toEqual(['ask', 'mark']);
    await expect(range({})).rejects.toThrow('session/invalid_request: ');
    await expect(range({ from_entry_id: ids['ask'] })).rejects.toThrow('session/invalid_request: ');
    await expect(range({ from_entry_id: ids['answer'], to_entry_id: ids['ask'] })).rejects.toThrow('session/invalid_request: ');
    await expect(range({ entry_ids: ['none'] })).rejects.toThrow('session/invalid_cursor: ');
  });
});
