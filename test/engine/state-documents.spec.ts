import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { LocalEngine } from '#libs/iii';
import { CopiedDocuments } from '../../libs/local/src/engine/journal/copied-documents.js';
import { SqliteDocuments } from '../../libs/local/src/engine/journal/sqlite-documents.js';
import { StateDocuments } from '../../libs/local/src/engine/journal/state-documents.js';
import { recordOf } from '../conformance/turns.js';
import { openTestStore, removeDataDir } from '../support/store.js';

/** The state of an engine that keeps all in its memory, and can be started anew. */
function memory() {
  const bus = new LocalEngine({ report: () => undefined }).connect({ name: 'state' });
  const values = new Map<string, unknown>();
  const keyOf = (payload: unknown): string => JSON.stringify([(payload as { scope: string }).scope, (payload as { key: string }).key]);
  bus.registerFunction({ id: 'state::get' }, (payload) => values.get(keyOf(payload)) ?? null);
  bus.registerFunction({ id: 'state::set' }, (payload) => void values.set(keyOf(payload), (payload as { value: unknown }).value));
  bus.registerFunction({ id: 'state::list' }, (payload) =>
    [...values].flatMap(([key, value]) => ((JSON.parse(key) as string[])[0] === (payload as { scope: string }).scope ? [value] : [])),
  );
  bus.registerFunction({ id: 'state::delete' }, (payload) => void values.delete(keyOf(payload)));
  return { bus, restart: () => values.clear() };
}

const documentOf = (session_id: string) => ({ session_id, revision: 3, record: recordOf(session_id), job: null, parked: [], effects: [] });

describe('documents in the state of an engine that never saves', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('keeps turns that have not ended, however long they wait, and lets go of the others', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { bus, restart } = memory();
    const documents = new StateDocuments(bus, () => 1_000, 'never');
    expect(documents.guarantee).toContain('turns are in the memory of the engine');
    await documents.write(documentOf('s_waits'), true);
    await documents.write(documentOf('s_ended'), false);
    vi.setSystemTime(Date.now() + 3_600_000);
    await documents.write(documentOf('s_new'), false);
    expect(documents.written).toEqual(['s_waits', 's_new']);

    restart();
    for (const session of documents.written) await documents.restore(session);
    const next = new StateDocuments(bus, () => 1_000, 'never');
    expect(await next.read('s_waits')).toEqual(documentOf('s_waits'));
    expect(await next.read('s_ended')).toBeNull();

    // What has ended is kept for a while only, also when it has waited before.
    await documents.write(documentOf('s_waits'), false);
    vi.setSystemTime(Date.now() + 3_600_000);
    await documents.write(documentOf('s_newer'), false);
    expect(documents.written).toEqual(['s_newer']);
  });
});

describe('documents with a copy on the disk of the worker', () => {
  it('are whole again when the engine and the worker have died at once, and give way to what others have written since', async () => {
    const { bus, restart } = memory();
    const opened = await openTestStore([]);
    onTestFinished(async () => {
      await opened.close();
      removeDataDir(opened.dataDir);
    });
    const { db, writer } = opened.store;
    const started = (): CopiedDocuments =>
      new CopiedDocuments(new StateDocuments(bus, () => 1_000, 'never'), new SqliteDocuments(db, writer));
    const answer = { session_id: 's_one', turn_id: 't_s_one', entry_id: 'e_1', digest: 'd' };
    const before = started();
    await before.write(documentOf('s_one'), true);
    await before.writeKey({ key: 'k', answer, expires_at: Date.now() + 60_000 });

    restart();
    const after = started();
    expect(await after.open()).toEqual(['s_one']);
    expect(await after.read('s_one')).toEqual(documentOf('s_one'));
    expect(await new StateDocuments(bus, () => 1_000, 'never').read('s_one')).toEqual(documentOf('s_one'));
    expect(await after.readKey('k')).toMatchObject({ answer });

    const elsewhere = { ...documentOf('s_one'), revision: 9 };
    await new StateDocuments(bus, () => 1_000, 'never').write(elsewhere, true);
    expect(await started().read('s_one')).toEqual(elsewhere);
  });
});
