import { describe, expect, it } from 'vitest';
import { TriggerBindings } from './bindings.js';
import { LocalEngine } from './local/engine.js';

interface Filter {
  session_id?: string | null;
}
const definition = {
  id: 'demo::happened',
  description: 'd',
  trigger_request_format: { type: 'object', properties: { session_id: { type: ['string', 'null'] } }, additionalProperties: false },
};

describe('TriggerBindings', () => {
  const bindings = (changes?: () => void) => new TriggerBindings<Filter>(definition, changes);
  const trigger = (id: string, function_id = 'f', config: { [key: string]: string } = {}) => ({
    id,
    type: definition.id,
    function_id,
    config,
  });

  it('are a set: the same function and filter twice is one, until its last registration goes', () => {
    const all = bindings();
    all.registerTrigger(trigger('1'));
    all.registerTrigger(trigger('2'));
    all.registerTrigger(trigger('3', 'f', { session_id: 's' }));
    all.registerTrigger(trigger('4', 'g'));
    expect(all.list().map(({ registration, config }) => [registration.function_id, config])).toEqual([
      ['f', {}],
      ['f', { session_id: 's' }],
      ['g', {}],
    ]);
    all.unregisterTrigger(trigger('1'));
    expect(all.list()).toHaveLength(3);
    all.unregisterTrigger(trigger('2'));
    expect(all.list()).toHaveLength(2);
  });

  it('refuse a configuration that does not fit, and say which field', () => {
    expect(() => bindings().registerTrigger({ ...trigger('1'), config: { session_id: 7 } })).toThrow(
      'demo/invalid_request: config of demo::happened: session_id must be string or null',
    );
    expect(() => bindings().registerTrigger({ ...trigger('1'), config: { other: 7 } })).toThrow('other is not a known field');
    expect(() => bindings().registerTrigger({ ...trigger('1'), config: null })).not.toThrow();
  });

  it('tell of each change', () => {
    let changes = 0;
    const all = bindings(() => {
      changes += 1;
    });
    all.registerTrigger(trigger('1'));
    all.unregisterTrigger(trigger('1'));
    all.unregisterTrigger(trigger('1'));
    expect([changes, all.empty]).toEqual([2, true]);
  });

  it('call each matching function once with its metadata, all of them although one fails', async () => {
    const bus = new LocalEngine().connect();
    const all = bindings();
    all.publish(bus);
    const got: unknown[] = [];
    bus.registerFunction({ id: 'a::fails' }, () => Promise.reject(new Error('no')));
    bus.registerFunction({ id: 'b::hears' }, (payload, { metadata }) => void got.push(payload, metadata));
    bus.registerTrigger({ type: definition.id, function_id: 'a::fails', config: {} });
    for (let n = 0; n < 2; n += 1) bus.registerTrigger({ type: definition.id, function_id: 'b::hears', config: {}, metadata: { m: 1 } });
    bus.registerTrigger({ type: definition.id, function_id: 'b::hears', config: { session_id: 'other' } });
    await expect(all.call(bus, { x: 1 }, ({ session_id }) => session_id == null)).rejects.toThrow('no');
    expect(got).toEqual([{ x: 1 }, { m: 1 }]);
  });
});
