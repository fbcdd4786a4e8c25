import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#libs/contracts';
import { recordOf } from '../conformance/turns.js';
import { hostOf, PATIENCE, workerOf } from './opened.js';

const document = { session_id: 's_bad', revision: 1, record: null, job: { step: 0, not_before: 0 }, parked: [], effects: [] };

describe('a worker whose place another one takes while it has no connection', () => {
  it('commits nothing more, and ends with the reason', { timeout: 30_000 }, async () => {
    const host = await hostOf();
    const worker = await workerOf(host, { store: 'engine' });
    const { bus } = host.engine.host;
    let called = 0;
    bus.registerFunction({ id: 'slow::call' }, () => {
      called += 1;
      return new Promise(() => undefined);
    });
    host.model.plays(host.model.asks('slow::call', {}), host.model.says('never said'));
    await host.ask('harness::send', host.model.send('s_fenced', 'go', ['slow::call']));
    await expect.poll(() => called, PATIENCE).toBe(1);
    const before = await host.ask('state::get', { scope: 'harness-turns', key: 's_fenced' });
    await host.engine.restart(() => {
      bus.registerFunction({ id: 'harness::send' }, () => null); // the other one
      return Promise.resolve();
    });
    await expect(worker.ended).rejects.toThrow(/harness\/duplicate: .* the worker test has registered/);
    expect(worker.said.join('\n')).toContain('error this worker ends');
    await worker.close(0);
    expect(await host.ask('state::get', { scope: 'harness-turns', key: 's_fenced' })).toEqual(before);
    expect(await host.texts('s_fenced')).toEqual(['go', '']);
  });

  it('is proven after a return of the engine, without an alarm', async () => {
    const host = await hostOf();
    const worker = await workerOf(host, { store: 'engine' });
    await host.engine.restart();
    host.model.plays(host.model.says('back'));
    await expect
      .poll(
        () =>
          host.ask('harness::send', host.model.send('s_back', 'hello')).then(
            () => true,
            () => false,
          ),
        PATIENCE,
      )
      .toBe(true);
    expect((await host.ended('s_back')).status).toBe('completed');
    expect(worker.said.filter((line) => line.startsWith('error'))).toEqual([]);
  });
});

describe('a worker whose records are in the state of an engine', () => {
  it('starts, and works, beside records that another program has damaged, and says which', { timeout: 30_000 }, async () => {
    const host = await hostOf();
    const set = (scope: string, key: string, value: unknown): Promise<unknown> => host.ask('state::set', { scope, key, value });
    const record = recordOf('s_bad');
    const damage: unknown[] = [
      'text',
      {},
      { ...document, effects: undefined },
      { ...document, effects: [{ kind: 'nothing known' }] },
      { ...document, parked: [{}] },
      { ...document, job: {} },
      { ...document, record: { status: 'running' } },
      { ...document, record: { ...record, calls: null } },
      { ...document, record: { ...record, session_id: 's_other' } },
    ];
    for (const [index, value] of damage.entries()) {
      const session_id = index === 0 ? 's_bad' : `s_bad_${index}`;
      await host.ask('session::ensure', { session_id });
      await host.ask('session::set-status', { session_id, status: 'working' });
      const named = typeof value === 'object' && value !== null && 'session_id' in value ? { ...value, session_id } : value;
      await set('harness-turns', session_id, named);
      await set('harness-turns-open', session_id, { session_id });
    }
    for (const mark of [null, 'text', {}, { session_id: 7 }]) await set('harness-turns-open', `mark ${JSON.stringify(mark)}`, mark);
    for (const key of [null, 'text', { key: 'k1' }]) await set('harness-keys', 'k1', key);

    const { said } = await workerOf(host, { store: 'engine' });
    const reports = said.filter((line) => line.startsWith('warn a turn cannot go on'));
    expect(reports).toHaveLength(damage.length);
    expect(reports[0]).toContain('harness-turns under s_bad is nothing that a harness wrote there (it is no object)');

    host.model.plays(host.model.says('fine'));
    await host.ask('harness::send', host.model.send('s_good', 'hello'));
    expect((await host.ended('s_good')).status).toBe('completed');
    await expect(host.ask('harness::send', host.model.send('s_bad_1', 'hello'))).rejects.toThrow('harness/damaged_record');
    const keyed = { ...host.model.send('s_good', 'hello'), idempotency_key: 'k1' };
    await expect(host.ask('harness::send', keyed)).rejects.toThrow('harness/damaged_record');
    // Whoever deletes it can go on.
    await host.ask('state::delete', { scope: 'harness-turns', key: 's_bad_1' });
    host.model.plays(host.model.says('fine again'));
    await host.ask('harness::send', host.model.send('s_bad_1', 'hello'));
    expect((await host.ended('s_bad_1')).status).toBe('completed');
  });

  it('writes again what another program has damaged while the engine was away', async () => {
    const host = await hostOf();
    await workerOf(host, { store: 'engine' });
    host.model.plays(host.model.says('kept'));
    await host.ask('harness::send', host.model.send('s_kept', 'keep it'));
    await host.ended('s_kept');
    await host.engine.restart(async () => {
      await host.ask('state::set', { scope: 'harness-turns', key: 's_kept', value: { revision: 1e9 } });
    });
    await expect
      .poll(() => host.ask('state::get', { scope: 'harness-turns', key: 's_kept' }), PATIENCE)
      .toMatchObject({ session_id: 's_kept', record: { status: 'completed' } });
  });

  it.each([
    ['state::set', { scope: 'harness-turns', key: 's_model', value: {} }],
    ['state::get', { scope: 'harness-turns', key: 's_model' }],
    ['state::list', { scope: 'harness-turns-open' }],
    ['state::delete', { scope: 'harness-keys', key: 'k' }],
    ['harness::on-session-deleted', { session_id: 's_model' }],
  ])('lets no model reach its records by %s %o, whatever is allowed', async (function_id, payload) => {
    const host = await hostOf();
    await workerOf(host, { store: 'engine' });
    host.model.plays(host.model.asks(function_id, payload), host.model.says('no'));
    await host.ask('harness::send', host.model.send('s_model', 'try it', ['*']));
    expect((await host.ended('s_model')).status).toBe('completed');
    expect((await host.texts('s_model'))[2]).toContain('not called');
    const details = (await host.transcript('s_model'))[2]?.message as unknown as { details: JsonObject };
    expect(details.details).toMatchObject({ error: 'policy_denied' });
  });
});
