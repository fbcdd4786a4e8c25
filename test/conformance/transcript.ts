import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Entry, textOf } from '#libs/contracts';
import type { NewEntry } from '#libs/turn';
import type { StoreAdapter, StoreProcess, TestedStore } from './store.js';
import { committed, ensure, entryOf, userMessage } from './turns.js';

/** What every adapter of the `Transcript` port must do, beside the journal that writes what it reads. */
export function transcriptConformance(adapter: StoreAdapter): void {
  describe(`a transcript: ${adapter.name}`, () => {
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

    const make = async (...names: string[]): Promise<string> => {
      count += 1;
      const id = `s_${count}`;
      await committed(one, ensure(id));
      for (const name of names) await append(id, entryOf(name));
      return id;
    };
    const append = (session_id: string, entry: NewEntry, at = one): Promise<void> =>
      committed(at, { kind: 'append-entry', session_id, entry });
    const summary = (entry_id: string, tail: string | null): NewEntry => ({
      entry_id,
      timestamp: 1,
      custom: { custom_type: 'compaction', data: { summary: 'Notes.', tail_start_entry_id: tail } },
    });
    const told = (entries: readonly Entry[]): string =>
      entries.map((entry) => (entry.kind === 'custom' ? `<${entry.id}>` : textOf(entry.message.content))).join(' ');
    /** The window in both processes, and in one that has read nothing before. */
    const window = async (id: string): Promise<string> => {
      const fresh = await store.open(); // one that only reads does no harm, however many may work on the store
      const windows = await Promise.all([one, other, fresh].map(async ({ transcript }) => told(await transcript.window(id))));
      await store.kill(fresh);
      expect(new Set(windows).size).toBe(1);
      return windows[0] ?? '';
    };

    it('has nothing of a session that is not there', async () => {
      expect(await one.transcript.window('s_none')).toEqual([]);
      expect(await one.transcript.entry('s_none', 'e')).toBeNull();
    });

    it('gives the entries in their order, as they are after the latest commit of any process', async () => {
      const id = await make('a', 'b');
      expect(await window(id)).toBe('a b');
      await append(id, entryOf('c'), other);
      expect(await window(id)).toBe('a b c');
      await committed(other, { kind: 'put-entry', session_id: id, entry: entryOf('b', 'B') });
      expect(await window(id)).toBe('a B c');
      await append(id, { entry_id: 'd', timestamp: 1, custom: { custom_type: 'mark', data: null } });
      expect(await window(id)).toBe('a B c <d>');
    });

    it('gives an entry with its revision and its origin, and null for one that is not there', async () => {
      const id = await make('a');
      await append(id, { ...entryOf('b'), origin: { turn_id: 't' } });
      expect(await other.transcript.entry(id, 'b')).toMatchObject({
        kind: 'message',
        id: 'b',
        parent_id: 'a',
        revision: 0,
        origin: { turn_id: 't' },
      });
      expect(await one.transcript.entry(id, 'c')).toBeNull();
      const told = (await one.transcript.window(id)).find((entry) => entry.id === 'b');
      const entry = await one.transcript.entry(id, 'b');
      const { id: entry_id, kind, origin } = told ?? {};
      if (adapter.abilities.windowTells === 'entries') expect(told).toEqual(entry);
      else expect(entry).toMatchObject({ id: entry_id, kind, origin, message: userMessage('b') });
    });

    it('begins with the latest summary, followed by what that does not cover', async () => {
      const id = await make('a', 'b', 'c');
      await window(id);
      await append(id, summary('s1', 'c'));
      expect(await window(id)).toBe('<s1> c');
      await append(id, entryOf('d'), other);
      expect(await window(id)).toBe('<s1> c d');
      await append(id, summary('s2', null), other);
      expect(await window(id)).toBe('<s2>');
      await append(id, entryOf('e'));
      expect(await window(id)).toBe('<s2> e');
    });

    it('gives everything where the tail of a summary is nowhere to be found', async () => {
      const id = await make('a', 'b');
      await append(id, summary('s1', 'nowhere'));
      await append(id, entryOf('c'));
      expect(await window(id)).toBe('a b <s1> c');
    });

    it('still knows the entries before a summary', async () => {
      const id = await make('a', 'b', 'c');
      await append(id, summary('s1', 'c'));
      await window(id);
      expect(await one.transcript.entry(id, 'a')).toMatchObject({ id: 'a' });
    });

    it('gives the active path where a conversation has branches', async () => {
      const id = await make('a', 'b', 'c');
      await window(id);
      const leaf = { function_id: 'session::set-active-leaf', payload: { session_id: id, entry_id: 'a' } };
      await other.bus.trigger(leaf);
      await append(id, entryOf('d'));
      expect(await window(id)).toBe('a d');
    });
  });
}
