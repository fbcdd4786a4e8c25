import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLOCK } from '#libs/turn';
import { failure, startApp, type TestApp } from '../confine/test/app.js';
import { DATABASE, openDatabase, type SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import type { EntryPage } from './snapshots.js';
import { StateModule } from './state.module.js';
import type { StateEvent } from './state-events.js';
import { applyUpdateOps, type UpdateOp } from './update-ops.js';

let dataDir: string;
let app: TestApp;
let db: SqliteConnection;
let writer: SqliteWriter;
let now: number;

async function start(): Promise<void> {
  db = await openDatabase({ dataDir });
  writer = new SqliteWriter(db);
  app = await startApp(StateModule, {
    providers: [
      { provide: DATABASE, useValue: db },
      { provide: SqliteWriter, useValue: writer },
      { provide: CLOCK, useValue: { now: () => now } },
    ],
    tokens: [DATABASE, SqliteWriter, CLOCK],
  });
}
async function stop(): Promise<void> {
  await app.close();
  await writer.close();
  db.close();
}
beforeEach(async () => {
  now = 1_000_000;
  dataDir = await mkdtemp(join(tmpdir(), 'state-'));
  await start();
});
afterEach(async () => {
  await stop();
  await rm(dataDir, { recursive: true, force: true });
});

const call = <T = unknown>(name: string, payload: object): Promise<T> => app.call<T>(`state::${name}`, payload);
const set = (scope: string, key: string, value: unknown): Promise<unknown> => call('set', { scope, key, value });

describe('state functions', () => {
  it('store, give and remove values, also over a restart', async () => {
    expect(await set('s', 'k', { a: [1, null, 'ü'] })).toEqual({ old_value: null, new_value: { a: [1, null, 'ü'] } });
    expect(await call('set', { scope: 's', key: 'k', data: 2 })).toEqual({ old_value: { a: [1, null, 'ü'] }, new_value: 2 });
    await set('s', 'nothing', null);
    await stop();
    await start();
    expect(await call('get', { scope: 's', key: 'k' })).toBe(2);
    expect(await call('get', { scope: 's', key: 'none' })).toBe(null);
    expect(await call('list', { scope: 's' })).toEqual([2, null]);
    expect(await call('list_keys', { scope: 's' })).toEqual({ keys: ['k', 'nothing'] });
    expect(await call('delete', { scope: 's', key: 'k' })).toBe(2);
    expect(await call('delete', { scope: 's', key: 'k' })).toBe(null);
    await set('another', 'k', 1);
    expect(await call('list_groups', {})).toEqual({ groups: ['another', 's'] });
    expect(await call('list', { scope: 'none' })).toEqual([]);
  });

  it('keep a value apart from what the caller does with it', async () => {
    const value = { list: [1] };
    await set('s', 'k', value);
    value.list.push(2);
    expect(await call('get', { scope: 's', key: 'k' })).toEqual({ list: [1] });
  });

  it('lose no update of many at once', async () => {
    await Promise.all(
      Array.from({ length: 50 }, () => call('update', { scope: 's', key: 'n', ops: [{ type: 'increment', path: 'count', by: 1 }] })),
    );
    expect(await call('get', { scope: 's', key: 'n' })).toEqual({ count: 50 });
  });

  it('apply the ops that fit and report the others', async () => {
    await set('s', 'k', { n: 'text', keep: 1 });
    expect(
      await call('update', {
        scope: 's',
        key: 'k',
        ops: [
          { type: 'increment', path: 'n', by: 1 },
          { type: 'remove', path: 'keep' },
        ],
      }),
    ).toEqual({
      old_value: { n: 'text', keep: 1 },
      new_value: { n: 'text' },
      errors: [{ op_index: 0, code: 'increment.not_number', message: expect.any(String) as string }],
    });
    expect(await call('update', { scope: 's', key: 'new', ops: [{ type: 'set', path: '__proto__', value: 1 }] })).toMatchObject({
      new_value: null,
      errors: [{ code: 'set.path.proto_polluted' }],
    });
    expect(await call('list_keys', { scope: 's' })).toEqual({ keys: ['k'] });
  });

  it.each([
    ['set', { scope: 's', key: 'k' }, /^INVALID_ARGUMENTS: value is missing/],
    ['set', { scope: '', key: 'k', value: 1 }, /^INVALID_ARGUMENTS: scope/],
    ['set', { scope: 's', key: 'k', value: 10n }, /^SET_ERROR: value is not JSON/],
    ['set', { scope: 's', key: 'k', value: 'x'.repeat(8_388_608) }, /^VALUE_TOO_LARGE: /],
    ['update', { scope: 's', key: 'k', ops: [{ type: 'other' }] }, /^INVALID_ARGUMENTS: ops/],
    ['list_entries', { scope: 's', limit: 0 }, /^INVALID_ARGUMENTS: limit/],
    ['list_entries', { scope: 's', cursor: 'none' }, /^INVALID_CURSOR: /],
  ])('refuse %s of a wrong payload', async (name, payload, message) => {
    expect(await failure(call(name, payload))).toMatch(message);
  });

  it('say when the store cannot be used', async () => {
    db.exec('DROP TABLE state');
    expect(await failure(call('get', { scope: 's', key: 'k' }))).toMatch(/^GET_ERROR: /);
    expect(await failure(set('s', 'k', 1))).toMatch(/^SET_ERROR: /);
    expect(await failure(call('list_groups', {}))).toMatch(/^LIST_GROUPS_ERROR: /);
  });
});

describe('state::list_entries', () => {
  const page = (payload: object): Promise<EntryPage> => call<EntryPage>('list_entries', { scope: 's', ...payload });

  it('shows all pages as the scope was at the first', async () => {
    for (let i = 0; i < 5; i++) await set('s', `k${i}`, i);
    const first = await page({ limit: 2 });
    expect(first).toMatchObject({
      entries: [
        { key: 'k0', value: 0 },
        { key: 'k1', value: 1 },
      ],
      done: false,
      offset: 0,
      total: 5,
    });
    await set('s', 'k3', 'changed');
    await call('delete', { scope: 's', key: 'k4' });
    await set('s', 'k9', 9);
    const second = await page({ limit: 2, cursor: first.next_cursor });
    const third = await page({ limit: 2, cursor: second.next_cursor });
    expect([...second.entries, ...third.entries]).toEqual([
      { key: 'k2', value: 2 },
      { key: 'k3', value: 3 },
      { key: 'k4', value: 4 },
    ]);
    expect(third).toMatchObject({ done: true, next_cursor: null, offset: 4, total: 5 });
    expect(await failure(page({ cursor: first.next_cursor }))).toMatch(/^INVALID_CURSOR: /);
  });

  it('bounds pages by bytes, and forgets a listing that is not continued', async () => {
    for (let i = 0; i < 4; i++) await set('s', `k${i}`, 'x'.repeat(200));
    const first = await page({ max_bytes: 700 });
    expect(first.entries).toHaveLength(2);
    expect(Buffer.byteLength(JSON.stringify(first))).toBeLessThanOrEqual(700);
    expect(await failure(page({ max_bytes: 256, cursor: first.next_cursor }))).toMatch(/^ROW_TOO_LARGE: .*"k2"/);
    expect((await page({ max_bytes: 700, cursor: first.next_cursor })).done).toBe(true);
    const other = await page({ limit: 1 });
    now += 120_000;
    expect(await failure(page({ cursor: other.next_cursor }))).toMatch(/^INVALID_CURSOR: /);
  });

  it('holds a limited number of listings', async () => {
    await set('s', 'a', 1);
    await set('s', 'b', 2);
    for (let i = 0; i < 16; i++) await page({ limit: 1 });
    expect(await failure(page({ limit: 1 }))).toMatch(/^SNAPSHOT_CAPACITY: /);
    expect((await page({})).done).toBe(true);
  });
});

describe('trigger type state', () => {
  it('tells bound functions what changed, where their configuration and condition allow', async () => {
    const seen: [string, StateEvent, unknown][] = [];
    const heard = (count: number): Promise<void> => expect.poll(() => seen.length).toBe(count);
    const bind = (name: string, config: { [key: string]: string }): void => {
      app.bus.registerFunction({ id: name }, (event, context) => seen.push([name, event as StateEvent, context.metadata]));
      app.bus.registerTrigger({ type: 'state', function_id: name, config, metadata: { from: name } });
    };
    app.bus.registerFunction({ id: 't::no' }, () => false);
    app.bus.registerFunction({ id: 't::maybe' }, () => undefined);
    app.bus.registerFunction({ id: 't::broken' }, () => Promise.reject(new Error('broken')));
    bind('t::all', {});
    bind('t::key', { scope: 's', key: 'k' });
    bind('t::other', { scope: 'other' });
    bind('t::never', { condition_function_id: 't::no' });
    bind('t::cond', { scope: 's', key: 'c', condition_function_id: 't::maybe' });
    app.bus.registerTrigger({ type: 'state', function_id: 't::broken', config: {} });
    await set('s', 'k', 1);
    await heard(2);
    expect(seen.map(([name]) => name).sort()).toEqual(['t::all', 't::key']);
    expect(seen[0]?.[1]).toEqual({ type: 'state', event_type: 'state:created', scope: 's', key: 'k', old_value: null, new_value: 1 });
    expect(seen.find(([name]) => name === 't::key')?.[2]).toEqual({ from: 't::key' });
    seen.length = 0;
    await call('update', { scope: 's', key: 'k', ops: [{ type: 'increment', path: '', by: 2 }] });
    await call('delete', { scope: 's', key: 'k' });
    await heard(4);
    expect(seen.filter(([name]) => name === 't::all').map(([, event]) => [event.event_type, event.old_value, event.new_value])).toEqual([
      ['state:updated', 1, 3],
      ['state:deleted', 3, null],
    ]);
    seen.length = 0;
    await set('s', 'c', 1);
    await heard(2);
    expect(seen.map(([name]) => name).sort()).toEqual(['t::all', 't::cond']);
  });
});

describe('applyUpdateOps', () => {
  const ops = (old: unknown, ...list: UpdateOp[]): unknown => applyUpdateOps(old as never, list).value;
  const codes = (old: unknown, ...list: UpdateOp[]): string[] => applyUpdateOps(old as never, list).errors.map((e) => e.code);

  it('sets, merges, counts, appends and removes', () => {
    expect(ops(undefined, { type: 'set', path: 'a.b', value: 1 })).toEqual({ 'a.b': 1 });
    expect(ops({ x: 1 }, { type: 'set', path: '', value: [1] })).toEqual([1]);
    expect(ops({ x: 1 }, { type: 'set', path: 'y' })).toEqual({ x: 1, y: null });
    expect(ops({ x: 1 }, { type: 'merge', value: { y: 2 } })).toEqual({ x: 1, y: 2 });
    expect(ops({ a: 'text' }, { type: 'merge', path: ['a', 'b'], value: { y: 2 } })).toEqual({ a: { b: { y: 2 } } });
    expect(ops({ a: { k: 1 } }, { type: 'merge', path: 'a', value: { y: 2 } })).toEqual({ a: { k: 1, y: 2 } });
    expect(ops(undefined, { type: 'decrement', path: 'n', by: 2 }, { type: 'increment', path: 'n', by: 5 })).toEqual({ n: 3 });
    expect(ops(undefined, { type: 'increment', path: '', by: 2 })).toBe(2);
    expect(
      ops(
        { l: [1], s: 'a' },
        { type: 'append', path: 'l', value: [2] },
        { type: 'append', path: 's', value: 'b' },
        { type: 'append', path: 'new', value: 1 },
        { type: 'append', path: ['d', 'e'], value: 't' },
      ),
    ).toEqual({ l: [1, [2]], s: 'ab', new: [1], d: { e: 't' } });
    expect(ops(['a'], { type: 'append', value: 'b' })).toEqual(['a', 'b']);
    expect(ops({ a: 1 }, { type: 'remove', path: 'a' }, { type: 'remove', path: 'a' })).toEqual({});
  });

  it('reports what does not fit and changes nothing for it', () => {
    expect(
      codes(
        [1],
        { type: 'set', path: 'a', value: 1 },
        { type: 'increment', path: 'a', by: 1 },
        { type: 'remove', path: 'a' },
        { type: 'merge', value: {} },
        { type: 'append', path: 'x', value: 1 },
      ),
    ).toEqual([
      'set.target_not_object',
      'increment.target_not_object',
      'remove.target_not_object',
      'merge.target_not_object',
      'append.target_not_object',
    ]);
    expect(
      codes(
        { n: 'x', o: {} },
        { type: 'increment', path: 'n', by: 1 },
        { type: 'append', path: 'o', value: 1 },
        { type: 'append', path: 'n', value: 1 },
        { type: 'merge', value: [] as never },
        { type: 'remove', path: '' },
      ),
    ).toEqual([
      'increment.not_number',
      'append.type_mismatch',
      'append.type_mismatch',
      'merge.value.not_an_object',
      'remove.path.empty_segment',
    ]);
    expect(
      codes(
        {},
        { type: 'merge', path: ['a', ''], value: {} },
        { type: 'merge', path: ['__proto__'], value: {} },
        { type: 'merge', value: JSON.parse('{"__proto__": {"x": 1}}') as never },
        { type: 'append', path: 'x'.repeat(257), value: 1 },
        { type: 'merge', path: Array<string>(33).fill('a'), value: {} },
        { type: 'merge', value: JSON.parse(`${'{"a":'.repeat(18)}1${'}'.repeat(18)}`) as never },
      ),
    ).toEqual([
      'merge.path.empty_segment',
      'merge.path.proto_polluted',
      'merge.value.proto_polluted',
      'append.path.segment_too_long',
      'merge.path.too_deep',
      'merge.value.too_deep',
    ]);
    expect(({} as { x?: number }).x).toBeUndefined();
    const old = { a: { b: 1 }, l: [1] };
    ops(old, { type: 'merge', path: 'a', value: { b: 2 } }, { type: 'append', path: 'l', value: 2 }, { type: 'remove', path: 'a' });
    expect(old).toEqual({ a: { b: 1 }, l: [1] });
  });
});
