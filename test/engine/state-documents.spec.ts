import { afterEach, describe, expect, it, vi } from 'vitest';
import { LocalEngine } from '#libs/iii';
import { StateDocuments } from '../../libs/local/src/engine/journal/state-documents.js';
import { recordOf } from '../conformance/turns.js';

/** The state of an engine that keeps all in its memory, and can be started anew. */
function memory() {
  const bus = new LocalEngine({ report: () => undefined }).connect({ name: 'state' });
  const values = new Map<string, unknown>();
  const keyOf = (payload: unknown): string => JSON.stringify([(payload as { scope: string }).scope, (payload as { key: string }).key]);
  bus.registerFunction({ id: 'state::get' }, (payload) => values.get(keyOf(payload)) ?? null);
  bus.registerFunction({ id: 'state::set' }, (payload) => void values.set(keyOf(payload), (payload as { value: unknown }).value));
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
