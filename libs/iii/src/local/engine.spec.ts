import { describe, expect, it } from 'vitest';
import type { JsonValue } from '#libs/contracts';
import { BusError, type InvocationContext, type TriggerRegistration } from '../bus.js';
import { type LocalBus, LocalEngine } from './engine.js';

interface Told {
  message: string;
  context: { [key: string]: unknown };
}

/** An engine with one worker; `told` is what it reports, `heard()` resolves with the next report. */
function engineWith(): { engine: LocalEngine; bus: LocalBus; told: Told[]; heard: () => Promise<Told> } {
  const told: Told[] = [];
  const waiting: ((report: Told) => void)[] = [];
  const engine = new LocalEngine({
    report: (message, context) => {
      told.push({ message, context });
      waiting.shift()?.({ message, context });
    },
  });
  return { engine, bus: engine.connect({ name: 'test' }), told, heard: () => new Promise((resolve) => waiting.push(resolve)) };
}

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'no error',
    (error: unknown) => (error instanceof BusError ? error.code : String(error)),
  );
const never = (): Promise<never> => new Promise(() => undefined);

describe('calls', () => {
  it('hand over values as they are, and the result', async () => {
    const { bus } = engineWith();
    const payload = { a: [1] };
    bus.registerFunction({ id: 'f::x' }, (given) => ({ same: given === payload }));
    expect(await bus.trigger({ function_id: 'f::x', payload })).toEqual({ same: true });
  });

  it('reach functions of other workers, until those leave', async () => {
    const { engine, bus } = engineWith();
    const other = engine.connect({ name: 'other' });
    other.registerFunction({ id: 'f::x' }, () => 1);
    expect(await bus.trigger({ function_id: 'f::x', payload: {} })).toBe(1);
    await other.disconnect();
    expect(await codeOf(bus.trigger({ function_id: 'f::x', payload: {} }))).toBe('function_not_found');
  });

  it('give an error of the target as it is, thrown or rejected', async () => {
    const { bus } = engineWith();
    const error = new TypeError('no');
    bus.registerFunction({ id: 'f::throws' }, () => {
      throw error;
    });
    bus.registerFunction({ id: 'f::rejects' }, () => Promise.reject(error));
    for (const function_id of ['f::throws', 'f::rejects']) await expect(bus.trigger({ function_id, payload: {} })).rejects.toBe(error);
  });

  it('end at their timeout; the target sees it', async () => {
    const { bus } = engineWith();
    let seen: InvocationContext | undefined;
    bus.registerFunction({ id: 'f::slow' }, (_payload, context) => {
      seen = context;
      return never();
    });
    await expect(bus.trigger({ function_id: 'f::slow', payload: {}, timeoutMs: 5 })).rejects.toThrow(
      'timeout: f::slow gave no result within 5 ms',
    );
    expect(seen?.signal.aborted).toBe(true);
  });

  it('end when their caller gives up; the target sees it', async () => {
    const { bus } = engineWith();
    const aborted = new Promise<void>((resolve) => {
      bus.registerFunction({ id: 'f::slow' }, (_payload, { signal }) => {
        signal.addEventListener('abort', () => resolve());
        stop.abort();
        return never();
      });
    });
    const stop = new AbortController();
    expect(await codeOf(bus.trigger({ function_id: 'f::slow', payload: {}, signal: stop.signal }))).toBe('invocation_stopped');
    await aborted;
  });

  it('do not begin when their caller has given up before', async () => {
    const { bus } = engineWith();
    let calls = 0;
    bus.registerFunction({ id: 'f::x' }, () => {
      calls += 1;
    });
    expect(await codeOf(bus.trigger({ function_id: 'f::x', payload: {}, signal: AbortSignal.abort() }))).toBe('invocation_stopped');
    await Promise.resolve();
    expect(calls).toBe(0);
  });

  it('leave nothing on the signal of their caller', async () => {
    const { bus } = engineWith();
    bus.registerFunction({ id: 'f::x' }, () => 1);
    const { signal } = new AbortController();
    let listeners = 0;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    for (let n = 0; n < 5; n += 1) await bus.trigger({ function_id: 'f::x', payload: {}, signal });
    expect(listeners).toBe(0);
  });

  it('of no result answer at once; what goes wrong in them is reported', async () => {
    const { bus, heard } = engineWith();
    bus.registerFunction({ id: 'f::fails' }, () => Promise.reject(new Error('no')));
    const report = heard();
    expect(await bus.trigger({ function_id: 'f::fails', payload: {}, action: { type: 'void' } })).toBeUndefined();
    expect(await report).toEqual({ message: 'a void call failed', context: { function_id: 'f::fails', error: 'no' } });
    expect(await codeOf(bus.trigger({ function_id: 'f::none', payload: {}, action: { type: 'void' } }))).toBe('function_not_found');
  });

  it('through a queue need one', async () => {
    const { engine, bus } = engineWith();
    const enqueue = () =>
      bus.trigger({ function_id: 'f::x', payload: { a: 1 }, metadata: { m: 1 }, action: { type: 'enqueue', queue: 'q' } });
    expect(await codeOf(enqueue())).toBe('enqueue_error');
    const jobs: unknown[] = [];
    engine.useQueue({
      enqueue: (job) => {
        jobs.push(job);
        return Promise.resolve('r1');
      },
    });
    expect(await enqueue()).toEqual({ messageReceiptId: 'r1' });
    expect(jobs).toEqual([{ queue: 'q', function_id: 'f::x', payload: { a: 1 }, metadata: { m: 1 } }]);
  });
});

describe('provenance', () => {
  const agent = { session_id: 's', turn_id: 't', depth: 0 };

  async function nested(outer: JsonValue | undefined, inner: JsonValue | undefined): Promise<JsonValue | undefined> {
    const { bus } = engineWith();
    bus.registerFunction({ id: 'f::inner' }, (_payload, { metadata }) => metadata);
    bus.registerFunction({ id: 'f::outer' }, (_payload, context) =>
      context.trigger({ function_id: 'f::inner', payload: {}, ...(inner === undefined ? {} : { metadata: inner }) }),
    );
    return await bus.trigger({ function_id: 'f::outer', payload: {}, ...(outer === undefined ? {} : { metadata: outer }) });
  }

  it('is inherited by nested calls, and nothing else is', async () => {
    expect(await nested({ agent, other: 1 }, undefined)).toEqual({ agent });
    expect(await nested({ agent }, { mine: 1 })).toEqual({ agent, mine: 1 });
    expect(await nested({ other: 1 }, undefined)).toBeUndefined();
    expect(await nested(undefined, { mine: 1 })).toEqual({ mine: 1 });
  });
});

describe('functions', () => {
  it('have one owner at a time', async () => {
    const { engine, bus } = engineWith();
    const first = bus.registerFunction({ id: 'f::x' }, () => 1);
    const second = engine.connect({ name: 'second' });
    expect(() => second.registerFunction({ id: 'f::x' }, () => 2)).toThrow(
      'FUNCTION_NAMESPACE_CONFLICT: function f::x is already registered by worker test',
    );
    first.unregister();
    const again = second.registerFunction({ id: 'f::x' }, () => 2);
    first.unregister();
    expect(await bus.trigger({ function_id: 'f::x', payload: {} })).toBe(2);
    again.unregister();
    again.unregister();
  });
  it.each(['', ' ', 'a b', 'a\n'])('may not be called %j', (id) => {
    expect(() => engineWith().bus.registerFunction({ id }, () => 1)).toThrow('INVALID_ARGUMENTS');
  });
  it('tell of each change', async () => {
    const { engine, bus } = engineWith();
    let changes = 0;
    const stop = engine.functions.onChange(() => {
      changes += 1;
    });
    const one = bus.registerFunction({ id: 'f::x' }, () => 1);
    one.unregister();
    one.unregister();
    expect(changes).toBe(2);
    stop();
    bus.registerFunction({ id: 'f::x' }, () => 1);
    expect(changes).toBe(2);
    await bus.disconnect();
  });
});

describe('triggers', () => {
  /** A provider of trigger type `t::x` that remembers what is bound; refuses functions named `f::no`. */
  function provide(bus: LocalBus, wait?: Promise<void>) {
    const bound: string[] = [];
    const check = (trigger: TriggerRegistration): void => {
      if (trigger.function_id === 'f::no') throw new Error('not that one');
      bound.push(trigger.id);
    };
    const registration = bus.registerTriggerType(
      { id: 't::x', description: 'd' },
      {
        registerTrigger: (trigger) => (wait === undefined ? check(trigger) : wait.then(() => check(trigger))),
        unregisterTrigger: (trigger) => void bound.splice(bound.indexOf(trigger.id), 1),
      },
    );
    return { bound, registration };
  }
  const parkedOf = (engine: LocalEngine) => engine.triggers.all().map(({ trigger, parked }) => [trigger.id, parked]);

  it('C07 wait for their type, and are bound when it comes, and again after it was gone', () => {
    const { engine, bus } = engineWith();
    bus.registerTrigger({ id: '1', type: 't::x', function_id: 'f::a', config: {} });
    expect(parkedOf(engine)).toEqual([['1', 'no worker provides this trigger type']]);
    const { bound, registration } = provide(bus);
    expect([bound, parkedOf(engine)]).toEqual([['1'], [['1', null]]]);
    registration.unregister();
    expect(parkedOf(engine)).toEqual([['1', 'no worker provides this trigger type']]);
    expect(provide(bus).bound).toEqual(['1']);
  });

  it('are unbound when they or their worker go', async () => {
    const { engine, bus } = engineWith();
    const { bound } = provide(bus);
    const other = engine.connect({ name: 'other' });
    const first = other.registerTrigger({ id: '1', type: 't::x', function_id: 'f::a', config: {} });
    other.registerTrigger({ id: '2', type: 't::x', function_id: 'f::b', config: {} });
    first.unregister();
    first.unregister();
    await Promise.resolve();
    expect(bound).toEqual(['2']);
    await other.disconnect();
    expect([bound, engine.triggers.all()]).toEqual([[], []]);
  });

  it('stay parked with the reason when the provider refuses, at once or later', async () => {
    const { engine, bus, heard } = engineWith();
    provide(bus);
    const report = heard();
    bus.registerTrigger({ id: '1', type: 't::x', function_id: 'f::no', config: {} });
    expect((await report).message).toContain('trigger 1 (t::x) is parked: Error: not that one');
    expect(parkedOf(engine)).toEqual([['1', 'not that one']]);

    const second = engineWith();
    provide(second.bus, Promise.resolve());
    const later = second.heard();
    second.bus.registerTrigger({ id: '1', type: 't::x', function_id: 'f::no', config: {} });
    await later;
    expect(parkedOf(second.engine)).toEqual([['1', 'not that one']]);
  });

  it('have one provider, and ids of their own', () => {
    const { bus } = engineWith();
    provide(bus);
    expect(() => provide(bus)).toThrow('TRIGGER_TYPE_CONFLICT');
    bus.registerTrigger({ id: '1', type: 't::x', function_id: 'f::a', config: {} });
    expect(() => bus.registerTrigger({ id: '1', type: 't::x', function_id: 'f::a', config: {} })).toThrow(
      'trigger 1 is already registered',
    );
  });

  it('are refused at once, and bound for good, by engine::register_trigger', async () => {
    const { engine, bus } = engineWith();
    const { bound } = provide(bus);
    const register = (function_id: string) =>
      bus.trigger<{ id: string }>({ function_id: 'engine::register_trigger', payload: { trigger_type: 't::x', function_id } });
    await expect(register('f::no')).rejects.toThrow('not that one');
    expect(engine.triggers.all()).toEqual([]);
    const { id } = await register('f::a');
    await engine.connect().disconnect();
    expect(bound).toEqual([id]);
    const unregister = () => bus.trigger({ function_id: 'engine::unregister_trigger', payload: { id } });
    expect(await unregister()).toEqual({ removed: true });
    expect(await unregister()).toEqual({ removed: false });
    expect(bound).toEqual([]);
  });
});

describe('discovery', () => {
  async function world() {
    const { engine, bus } = engineWith();
    const other = engine.connect({ name: 'other', runtime: 'python', version: '1' });
    bus.registerFunction(
      { id: 'b::read', description: 'reads a file', request_format: { type: 'object' }, response_format: { type: 'string' } },
      () => 1,
    );
    bus.registerFunction({ id: 'a::write', description: 'writes, then reads' }, () => 1);
    other.registerFunction({ id: 'c::hidden', metadata: { internal: true } }, () => 1);
    other.registerFunction({ id: 'engine::queue::stats' }, () => 1);
    other.registerTrigger({ id: 'tr', type: 't::x', function_id: 'b::read', config: { k: 1 } });
    const ask = <T>(function_id: string, payload: JsonValue = {}): Promise<T> => bus.trigger<T>({ function_id, payload });
    const ids = async (payload: JsonValue): Promise<string[]> =>
      (await ask<{ functions: { function_id: string }[] }>('engine::functions::list', payload)).functions.map((row) => row.function_id);
    return { engine, bus, other, ask, ids };
  }

  it('lists what is not internal, by id, whatever the order of registration', async () => {
    const { ids } = await world();
    expect(await ids({})).toEqual(['a::write', 'b::read', 'engine::queue::stats']);
    expect(await ids({ include_internal: true })).toEqual(expect.arrayContaining(['c::hidden', 'engine::functions::list']));
  });
  it.each<[JsonValue, string[]]>([
    [{ prefix: 'b::' }, ['b::read']],
    [{ search: 'READS' }, ['a::write', 'b::read']],
    [{ search: 'read file' }, ['b::read']],
    [{ search: 'read' }, ['b::read', 'a::write']],
    [{ search: 'nothing' }, []],
    [{ worker: 'test' }, ['a::write', 'b::read']],
    [{ workers: ['other'], include_internal: true }, ['c::hidden', 'engine::queue::stats']],
    [{ prefix: null, search: null, worker: null }, ['a::write', 'b::read', 'engine::queue::stats']],
  ])('narrows the list by %j', async (query, expected) => {
    const { ids } = await world();
    expect(await ids(query)).toEqual(expected);
  });
  it('refuses a query that is none', async () => {
    const { ask } = await world();
    await expect(ask('engine::functions::list', { prefix: 7 })).rejects.toThrow('INVALID_ARGUMENTS: prefix must be string or null');
    await expect(ask('engine::functions::info', {})).rejects.toThrow('give either function_id or function_ids');
    await expect(ask('engine::functions::info', { function_id: 'a', function_ids: ['a'] })).rejects.toThrow('give either');
    await expect(ask('engine::functions::info', { function_ids: Array.from({ length: 33 }, String) })).rejects.toThrow('at most 32');
    await expect(ask('engine::functions::info', { function_id: 'x::y' })).rejects.toThrow('NOT_FOUND: no function x::y is registered');
  });
  it('shows contracts, one or several, with what is bound to them', async () => {
    const { ask } = await world();
    const info = {
      function_id: 'b::read',
      namespace: 'default',
      worker_name: 'test',
      description: 'reads a file',
      request_schema: { type: 'object' },
      response_schema: { type: 'string' },
    };
    const registered_triggers = [{ id: 'tr', trigger_type: 't::x', config: { k: 1 } }];
    expect(await ask('engine::functions::info', { function_id: 'b::read' })).toEqual({ ...info, registered_triggers });
    expect(await ask('engine::functions::info', { function_ids: ['x::y', 'b::read', 'x::y'] })).toEqual({
      functions: [
        { function_id: 'x::y', error: 'not_found' },
        { ...info, registered_triggers },
      ],
    });
  });
  it('shows workers, trigger types and bindings', async () => {
    const { ask, bus } = await world();
    bus.registerTriggerType(
      { id: 't::x', description: 'd', trigger_request_format: { type: 'object' } },
      { registerTrigger: () => undefined, unregisterTrigger: () => undefined },
    );
    expect(await ask('engine::workers::list', { runtime: 'python' })).toMatchObject({
      workers: [{ name: 'other', version: '1', status: 'connected' }],
    });
    expect(await ask('engine::workers::info', { name: 'other' })).toMatchObject({
      name: 'other',
      functions: ['c::hidden', 'engine::queue::stats'],
    });
    await expect(ask('engine::workers::info', { name: 'nobody' })).rejects.toThrow('NOT_FOUND: no worker nobody');
    expect(await ask('engine::triggers::list', { search: 't::' })).toEqual({
      triggers: [{ id: 't::x', namespace: 'default', worker_name: 'test', description: 'd' }],
    });
    expect(await ask('engine::triggers::info', { id: 't::x' })).toMatchObject({
      configuration_schema: { type: 'object' },
      request_schema: null,
      instance_count: 1,
    });
    expect(await ask('engine::registered-triggers::list', { trigger_type: 't::x' })).toMatchObject({
      registered_triggers: [{ id: 'tr', function_id: 'b::read', worker_name: 'other', config_summary: '{"k":1}' }],
    });
    expect(await ask('engine::registered-triggers::list', { function_id: 'a::write' })).toEqual({ registered_triggers: [] });
    expect(await ask('engine::registered-triggers::info', { id: 'tr' })).toMatchObject({ trigger_type: 't::x' });
  });
});
