import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Entry, textOf } from '#libs/contracts';
import { newDataDir, openTestStore, removeDataDir, type TestStore, userMessage } from '../../../../test/support/store.js';
import { LATEST_COMPACTION } from './path.js';
import { SessionsModule } from './sessions.module.js';

const dataDir = newDataDir();
let one: TestStore;
let other: TestStore;
let count = 0;

beforeAll(async () => {
  one = await openTestStore([SessionsModule], dataDir);
  other = await openTestStore([SessionsModule], dataDir);
});
afterAll(async () => {
  await one.close();
  await other.close();
  removeDataDir(dataDir);
});

const call = <T>(name: string, payload: object, at = one): Promise<T> => at.call<T>(`session::${name}`, payload);
const make = async (...texts: string[]): Promise<string> => {
  count += 1;
  const session_id = `s_window_${count}`;
  await call('ensure', { session_id });
  for (const text of texts) await add(session_id, text);
  return session_id;
};
/** Adds a message whose entry is called after it. */
const add = async (session_id: string, text: string, at = one, more: object = {}): Promise<void> => {
  await call('append', { session_id, entry_id: `e_${text}`, message: userMessage(text), ...more }, at);
};
const summarise = async (session_id: string, entry_id: string, tail: string | null, at = one): Promise<void> => {
  const custom = { custom_type: 'compaction', data: { summary: 'Notes.', tail_start_entry_id: tail } };
  await call('append', { session_id, entry_id: `e_${entry_id}`, custom }, at);
};
const told = (entries: readonly Entry[]): string =>
  entries.map((entry) => (entry.kind === 'custom' ? `<${entry.id.slice(2)}>` : textOf(entry.message.content))).join(' ');
/** The window as it is read from the disk, and as it is followed in memory. */
const windows = async (session_id: string): Promise<string[]> => {
  const followed = [told(await one.store.transcript.window(session_id)), told(await other.store.transcript.window(session_id))];
  one.store.transcript.forget(session_id);
  return [...new Set([...followed, told(await one.store.transcript.window(session_id))])];
};

describe('the window of a session', () => {
  it('is the whole of it before anything is summed up', async () => {
    expect(await windows(await make('a', 'b'))).toEqual(['a b']);
  });

  it('begins with the latest summary, then what that does not cover, in every process', async () => {
    const id = await make('a', 'b', 'c');
    await windows(id);
    await summarise(id, 'first', 'e_c');
    expect(await windows(id)).toEqual(['<first> c']);
    await add(id, 'd');
    await add(id, 'e', other);
    expect(await windows(id)).toEqual(['<first> c d e']);
    await summarise(id, 'second', 'e_e', other);
    expect(await windows(id)).toEqual(['<second> e']);
    await add(id, 'f');
    expect(await windows(id)).toEqual(['<second> e f']);
  });

  it('begins after a summary without a tail, and is the whole path where the tail is unknown', async () => {
    const id = await make('a', 'b');
    await windows(id);
    await summarise(id, 'all', null);
    await add(id, 'c');
    expect(await windows(id)).toEqual(['<all> c']);
    await summarise(id, 'lost', 'e_nowhere');
    expect(await windows(id)).toEqual(['a b <all> c <lost>']);
  });

  it('may reach back behind an earlier summary', async () => {
    const id = await make('a', 'b', 'c');
    await summarise(id, 'first', 'e_c');
    await windows(id);
    await summarise(id, 'wider', 'e_b');
    expect(await windows(id)).toEqual(['<wider> b c <first>']);
  });

  it('follows the active path of a session with branches', async () => {
    const id = await make('a', 'b', 'c');
    await summarise(id, 'main', 'e_c');
    await add(id, 'd');
    await add(id, 'x', one, { parent_id: 'e_b' });
    expect(await windows(id)).toEqual(['a b x']);
    await add(id, 'y');
    await summarise(id, 'side', 'e_y');
    expect(await windows(id)).toEqual(['<side> y']);
    await call('set-active-leaf', { session_id: id, entry_id: 'e_d' });
    expect(await windows(id)).toEqual(['<main> c d']);
    await summarise(id, 'none', null);
    await add(id, 'e');
    expect(await windows(id)).toEqual(['<none> e']);
    await summarise(id, 'lost', 'e_x');
    expect(await windows(id)).toEqual(['a b c <main> d <none> e <lost>']);
  });

  it('is the same after a fork, whose entries have ids of their own', async () => {
    const id = await make('a', 'b', 'c');
    await summarise(id, 'first', 'e_b');
    await add(id, 'd');
    const { session_id } = await call<{ session_id: string }>('fork', { session_id: id, entry_id: 'e_d' });
    expect(
      (await one.store.transcript.window(session_id)).map((entry) => (entry.kind === 'custom' ? 'summary' : textOf(entry.message.content))),
    ).toEqual(['summary', 'b', 'c', 'd']);
  });

  it('is read without what lies before it, however long the session is', () => {
    const plan = (sql: string): string => JSON.stringify(one.store.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all());
    const latest = plan(LATEST_COMPACTION.replace('?', '1'));
    expect(latest).toContain('entries_compactions');
    expect(latest).not.toContain('TEMP B-TREE');
    expect(plan('SELECT * FROM entries WHERE sid = 1 AND seq >= 5 ORDER BY seq')).toContain(
      'SEARCH entries USING PRIMARY KEY (sid=? AND seq>?)',
    );
  });
});
