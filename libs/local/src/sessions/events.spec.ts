import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import { newDataDir, openTestStore, recorder, removeDataDir, type TestStore, userMessage } from '../../../../test/support/store.js';
import { isSessionEvent, SessionEvents } from './events.js';
import { SessionsModule } from './sessions.module.js';

const TYPES = ['created', 'message-added', 'message-updated', 'status-changed', 'meta-updated', 'deleted'];
let dataDir: string;
let one: TestStore;

/** Publishes the events of a store and wires them to its delivery, as the runtime does. */
function listen(store: TestStore): SessionEvents {
  const events = store.app.get(SessionEvents, { strict: false });
  events.publish();
  store.store.delivery.addListeners({
    wants: (type) => events.wants(type),
    deliver: (event) => (isSessionEvent(event) ? events.deliver(event) : Promise.resolve()),
  });
  return events;
}

beforeEach(async () => {
  dataDir = newDataDir();
  one = await openTestStore([SessionsModule], dataDir);
  listen(one);
});
afterEach(async () => {
  await one.close();
  removeDataDir(dataDir);
});

const call = <T>(name: string, payload: object): Promise<T> => one.call<T>(`session::${name}`, payload);
const bind = (type: string, function_id: string, config: JsonValue = {}, metadata?: JsonValue): void => {
  one.bus.registerTrigger({ type: `session::${type}`, function_id, config, ...(metadata === undefined ? {} : { metadata }) });
};

describe('session events', () => {
  it('tell of each change with its payload', async () => {
    const seen = Object.fromEntries(TYPES.map((type) => [type, recorder(one.bus, `on::${type}`)]));
    for (const type of TYPES) bind(type, `on::${type}`);
    const { session_id } = await call<{ session_id: string }>('create', { title: 't', metadata: { owner: 'u' } });
    const { entry_id } = await call<{ entry_id: string }>('append', { session_id, message: userMessage('a'), origin: { turn_id: 't_1' } });
    const { entry_id: marked } = await call<{ entry_id: string }>('append', { session_id, custom: { custom_type: 'mark', data: 1 } });
    await call('append', { session_id, entry_id, message: userMessage('again') }); // no-op: no event
    await call('update-message', { session_id, entry_id, content: [] });
    await call('update-message', { session_id, entry_id, content: [], expected_revision: 9 }); // refused: no event
    await call('set-status', { session_id, status: 'working', reason: 'one' });
    await call('set-status', { session_id, status: 'working', reason: 'one' }); // the same: no event
    await call('set-status', { session_id, status: 'working', reason: 'two' });
    await call('set-meta', { session_id, title: 'new' });
    await call('set-draft', { session_id, draft: 'x' });
    await call('set-active-leaf', { session_id, entry_id });
    const { session_id: forked } = await call<{ session_id: string }>('fork', { session_id, entry_id });
    await call('delete', { session_id });
    await call('delete', { session_id }); // not there: no event
    await Promise.all([seen['created']?.until(2), seen['deleted']?.until(1)]);
    const timestamp = expect.any(Number) as number;
    expect(Object.fromEntries(Object.entries(seen).map(([type, { got }]) => [type, got]))).toEqual({
      created: [
        { session_id, title: 't', description: '', status: 'idle', created_at: timestamp },
        { session_id: forked, title: 'new', description: '', status: 'idle', created_at: timestamp, forked_from: session_id },
      ],
      'message-added': [
        { session_id, entry_id, parent_id: null, message: userMessage('a'), origin: { turn_id: 't_1' }, timestamp },
        { session_id, entry_id: marked, parent_id: entry_id, custom: { custom_type: 'mark', data: 1 }, timestamp },
      ],
      'message-updated': [
        { session_id, entry_id, message: { ...userMessage('a'), content: [] }, revision: 1, origin: { turn_id: 't_1' }, timestamp },
      ],
      'status-changed': [
        { session_id, status: 'working', previous_status: 'idle', status_reason: 'one', timestamp },
        { session_id, status: 'working', previous_status: 'working', status_reason: 'two', timestamp },
      ],
      'meta-updated': [{ session_id, title: 'new', description: '', metadata: { owner: 'u' }, timestamp }],
      deleted: [{ session_id, timestamp }],
    });
  });

  it('reach only bindings whose every key matches', async () => {
    const names = ['session', 'role', 'custom-role', 'meta', 'both', 'other', 'last'];
    const seen = Object.fromEntries(names.map((name) => [name, recorder(one.bus, `on::${name}`)]));
    const { session_id } = await call<{ session_id: string }>('create', { metadata: { owner: 'u', n: 1 } });
    const { session_id: else_ } = await call<{ session_id: string }>('create', {});
    bind('message-added', 'on::session', { session_id });
    bind('message-added', 'on::role', { roles: ['user'] });
    bind('message-added', 'on::custom-role', { roles: ['custom'] });
    bind('message-added', 'on::meta', { metadata: { owner: 'u' } });
    bind('message-added', 'on::both', { session_id, roles: ['assistant'], metadata: { owner: 'u' } });
    bind('message-added', 'on::other', { metadata: { owner: 'u', n: 2 } });
    bind('deleted', 'on::last', { metadata: { owner: 'u' } });
    await call('append', { session_id, message: userMessage('a') });
    await call('append', { session_id, custom: { custom_type: 'mark' } });
    await call('append', { session_id, message: { role: 'custom', custom_type: 'note', content: [], timestamp: 1 } });
    await call('append', { session_id: else_, message: userMessage('b') });
    await call('delete', { session_id: else_ });
    await call('delete', { session_id });
    await seen['last']?.until(1);
    expect(Object.fromEntries(Object.entries(seen).map(([name, { got }]) => [name, got.length]))).toEqual({
      session: 3,
      role: 2,
      'custom-role': 1,
      meta: 3,
      both: 0,
      other: 0,
      last: 1,
    });
  });

  it('pass on the metadata of the binding, and forget what is unbound', async () => {
    const got: unknown[] = [];
    one.bus.registerFunction({ id: 'on::it' }, (_, context) => got.push(context.metadata));
    const binding = one.bus.registerTrigger({ type: 'session::created', function_id: 'on::it', config: {}, metadata: { room: 7 } });
    await call('create', {});
    expect(got).toEqual([{ room: 7 }]);
    binding.unregister();
    await call('create', {});
    expect(got).toHaveLength(1);
    expect(one.app.get(SessionEvents, { strict: false }).wants('session::created')).toBe(false);
  });

  it('refuse a configuration that they do not know', async () => {
    bind('created', 'on::x', { session_id: 's' });
    bind('message-added', 'on::x', { roles: ['nobody'] });
    bind('deleted', 'on::x', { roles: ['user'] });
    await new Promise(setImmediate);
    expect(one.engine.triggers.all().map(({ parked }) => parked)).toEqual([
      expect.stringContaining('session/invalid_request: config of session::created: session_id is not a known field'),
      expect.stringContaining('session/invalid_request: config of session::message-added'),
      expect.stringContaining('session/invalid_request: config of session::deleted: roles is not a known field'),
    ]);
  });

  it('are stored with the change, and delivered by another process when theirs is gone', async () => {
    let release = (): void => undefined;
    const blocked = recorder(one.bus, 'on::created', () => new Promise<void>((resolve) => (release = resolve)));
    bind('created', 'on::created');
    const { session_id } = await call<{ session_id: string }>('create', {});
    await blocked.until(1); // delivered, but never acknowledged
    one.store.db.prepare('UPDATE processes SET lease_until = 0').run();
    const two = await openTestStore([SessionsModule], dataDir);
    listen(two);
    const again = recorder(two.bus, 'on::created');
    two.bus.registerTrigger({ type: 'session::created', function_id: 'on::created', config: {} });
    two.store.delivery.recover((owner) => two.store.processes.isGone(owner, Date.now()));
    await again.until(1);
    expect(again.got).toMatchObject([{ session_id }]);
    release();
    await two.close();
  });
});
