import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestMicroservice } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BUS, BusErrorFilter, IiiTransport, type LocalBus, LocalEngine } from '#libs/iii';
import { defaultSettings } from '#libs/turn';
import { defaultRouterSettings } from '../router/settings.js';
import { ConfigurationBusModule, ConfigurationModule, LiveConfiguration } from './index.js';

let dir: string;
let app: INestMicroservice;
let bus: LocalBus;
let live: LiveConfiguration;
const ENV = { LIMIT: '7', TOKEN: 'sk-secret-value' };
const opened: INestMicroservice[] = [];

async function open(): Promise<void> {
  bus = new LocalEngine({ report: (message) => reported.push(message) }).connect({ name: 'test' });
  live = new LiveConfiguration(dir, { env: ENV, graceMs: 40 });
  const module = await Test.createTestingModule({
    imports: [
      { module: class {}, global: true, providers: [{ provide: BUS, useValue: bus }], exports: [BUS] },
      ConfigurationModule.forRoot({ configuration: live }),
      ConfigurationBusModule,
    ],
  }).compile();
  app = module.createNestMicroservice({ strategy: new IiiTransport(bus), logger: false });
  app.useGlobalFilters(new BusErrorFilter());
  await app.listen();
  opened.push(app);
}
const reported: string[] = [];
beforeEach(async () => {
  dir = join(mkdtempSync(join(tmpdir(), 'config-bus-')), 'config');
  reported.length = 0;
  await open();
});
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  rmSync(join(dir, '..'), { recursive: true, force: true });
});

const call = <T = { [key: string]: unknown }>(name: string, payload: unknown): Promise<T> =>
  bus.trigger<T>({ function_id: `configuration::${name}`, payload });
const text = (name: string): string => readFileSync(join(dir, name), 'utf8');
const write = (name: string, content: string): void => {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, name), content);
};
const refused = async (done: Promise<unknown>): Promise<{ code: string; detail: string }> => {
  const error = await done.then(
    () => expect.unreachable('it was accepted'),
    (thrown: unknown) => thrown,
  );
  return error as { code: string; detail: string };
};
const schema = {
  type: 'object',
  properties: { limit: { type: 'integer' }, api_key: { type: 'string' } },
  required: ['limit'],
  additionalProperties: false,
};
const entry = { id: 'my-worker', name: 'My worker', description: 'For a test.', schema };

/** Collects the events of a binding; `next` waits for one more. */
function events(config: unknown = {}): { all: { [key: string]: unknown }[]; next(): Promise<{ [key: string]: unknown }> } {
  const all: { [key: string]: unknown }[] = [];
  let taken = 0;
  const id = `test::listener-${Math.random()}`;
  bus.registerFunction({ id }, (event) => void all.push(event as { [key: string]: unknown }));
  bus.registerTrigger({ type: 'configuration', function_id: id, config: config as never });
  return {
    all,
    next: async () => {
      await expect.poll(() => all.length, { interval: 5 }).toBeGreaterThan(taken);
      return all[taken++] as { [key: string]: unknown };
    },
  };
}

describe('the entries of the harness', () => {
  it('are listed with the schemas of their rules, and without values', async () => {
    const { configurations } = await call<{ configurations: { id: string; schema: { properties: object }; value?: unknown }[] }>(
      'list',
      {},
    );
    expect(configurations.map(({ id }) => id)).toEqual(['harness', 'llm-router', 'confine', 'approval']);
    expect(configurations[0]?.schema.properties).toMatchObject({ max_depth: { type: 'integer', minimum: 0, maximum: 100, default: 3 } });
    expect(configurations.every((each) => !('value' in each))).toBe(true);
    expect(await call('schema', { id: 'confine' })).toMatchObject({ id: 'confine', name: 'Confinement' });
  });

  it('give the values in force, or as they are written when raw', async () => {
    expect(await call('get', { id: 'harness' })).toEqual({ id: 'harness', value: defaultSettings });
    expect(await call('get', { id: 'harness', raw: true })).toEqual({ id: 'harness', value: {} });
    write('llm-router.yaml', 'providers:\n  openai:\n    api_key: "${TOKEN:}"\n    max_tokens: ${LIMIT}\n');
    await live.reload();
    expect(await call('get', { id: 'llm-router' })).toMatchObject({
      value: { ...defaultRouterSettings, providers: { openai: { api_key: 'sk-secret-value', max_tokens: 7 } } },
    });
    expect(await call('get', { id: 'llm-router', raw: true })).toEqual({
      id: 'llm-router',
      value: { providers: { openai: { api_key: '${TOKEN:}', max_tokens: '${LIMIT}' } } },
    });
  });

  it('are set as a whole, in force at once and after a start, in a file for its owner alone', async () => {
    const { old_value, new_value } = await call<{ [key: string]: { max_depth: number } }>('set', {
      id: 'harness',
      value: { max_depth: 5 },
    });
    expect([old_value?.max_depth, new_value?.max_depth, live.current.harness.max_depth]).toEqual([3, 5, 5]);
    expect(text('harness.yaml')).toBe('max_depth: 5\n');
    if (process.platform !== 'win32') expect(statSync(join(dir, 'harness.yaml')).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir)).toEqual(['harness.yaml']);
    await open();
    expect(live.current.harness.max_depth).toBe(5);
  });

  it('keep comments, order and references where they are set', async () => {
    write(
      'llm-router.yaml',
      '# keys\nproviders:\n  openai:\n    # mine\n    api_key: ${TOKEN:}\n    max_tokens: 5\n  old: {}\ndefault_provider: openai # usual\n',
    );
    await live.reload();
    await call('set', {
      id: 'llm-router',
      value: { default_provider: 'openai', providers: { openai: { api_key: '${TOKEN:}', max_tokens: 6 } }, settings: { retry_max: 1 } },
    });
    expect(text('llm-router.yaml')).toBe(
      '# keys\nproviders:\n  openai:\n    # mine\n    api_key: ${TOKEN:}\n    max_tokens: 6\ndefault_provider: openai # usual\nsettings:\n  retry_max: 1\n',
    );
    expect(live.current.router.providers['openai']).toMatchObject({ api_key: 'sk-secret-value', max_tokens: 6 });
  });

  it('are written through a link, which stays', async () => {
    const target = join(dir, '..', 'dotfile.yaml');
    mkdirSync(dir);
    writeFileSync(target, 'max_depth: 1\n', { mode: 0o640 });
    symlinkSync(target, join(dir, 'harness.yaml'));
    await call('set', { id: 'harness', value: { max_depth: 2 } });
    expect(readFileSync(target, 'utf8')).toBe('max_depth: 2\n');
    if (process.platform !== 'win32') expect(statSync(target).mode & 0o777).toBe(0o640);
  });

  it.each([
    ['a wrong value', { max_depth: 'x' }, 'max_depth must be a whole number'],
    ['an unknown field', { depth: 1 }, 'depth is not a known field'],
    ['no mapping', [1], 'must be a mapping of fields'],
    ['a reference to nothing', { default_model: '${NOT_SET}' }, 'NOT_SET'],
    ['what only stands for a secret', { default_model: '[hidden]' }, 'default_model is only what stands for a secret'],
  ])('refuse %s, and nothing is written', async (_case, value, message) => {
    const error = await refused(call('set', { id: 'harness', value }));
    expect(error.code).toBe('SCHEMA_INVALID');
    expect(error.detail).toContain(message);
    expect(() => text('harness.yaml')).toThrow('ENOENT');
  });

  it('are not set while another file is wrong, since that could not be in force', async () => {
    write('confine.yaml', 'root: 7\n');
    const error = await refused(call('set', { id: 'harness', value: { max_depth: 5 } }));
    expect(error).toMatchObject({ code: 'ADAPTER_ERROR', detail: expect.stringContaining('confine.yaml:1: root must be') as string });
    expect(readdirSync(dir)).toEqual(['confine.yaml']);
  });

  it('take the last of many sets at once', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => call('set', { id: 'harness', value: { max_depth: index } })));
    expect(text('harness.yaml')).toBe('max_depth: 19\n');
    expect(live.current.harness.max_depth).toBe(19);
    expect(readdirSync(dir)).toEqual(['harness.yaml']);
  });

  it('cannot be registered by others', async () => {
    expect(await refused(call('register', { ...entry, id: 'harness' }))).toMatchObject({ code: 'INVALID_ID' });
  });
});

describe('registered entries', () => {
  it('keep their value when they are registered again, unless an initial value is given', async () => {
    expect(await call('register', entry)).toEqual({ ...entry, value: null });
    expect(await call('register', { ...entry, initial_value: { limit: 1 }, metadata: { a: 1 } })).toEqual({
      ...entry,
      metadata: { a: 1 },
      value: { limit: 1 },
    });
    expect(await call('register', entry)).toEqual({ ...entry, value: { limit: 1 } });
    expect(await call('register', { ...entry, initial_value: { limit: 2 } })).toMatchObject({ value: { limit: 2 } });
    expect(await call('schema', { id: entry.id })).toEqual(entry);
    expect(text('my-worker.yaml')).toBe('limit: 2\n');
    await open();
    expect(await call('get', { id: entry.id })).toEqual({ id: entry.id, value: { limit: 2 } });
  });

  it('expand references, as the type that the text has', async () => {
    await call('register', { ...entry, initial_value: { limit: '${LIMIT:1}', api_key: '${NONE:x}' } });
    expect(await call('get', { id: entry.id, raw: false })).toEqual({ id: entry.id, value: { limit: 7, api_key: 'x' } });
    expect(await call('get', { id: entry.id, raw: true })).toEqual({ id: entry.id, value: { limit: '${LIMIT:1}', api_key: '${NONE:x}' } });
  });

  it.each([
    ['text', { type: 'string' }, 'hello'],
    ['a number', { type: 'number' }, 1.5],
    ['a list', { type: 'array' }, [1, { a: null }]],
    ['nothing', true, null],
    ['text that looks like a number', { type: 'string' }, '12'],
  ])('may be %s', async (_case, kind, value) => {
    await call('register', { ...entry, schema: kind, initial_value: value });
    expect(await call('get', { id: entry.id })).toEqual({ id: entry.id, value });
    expect(await call('set', { id: entry.id, value })).toEqual({ old_value: value, new_value: value });
  });

  it('may share an $id, name a newer dialect, and be recursive', async () => {
    const recursive = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/x',
      type: 'object',
      properties: { next: { $ref: '#' } },
      additionalProperties: false,
    };
    for (const id of ['a', 'b']) await call('register', { ...entry, id, schema: recursive, initial_value: { next: { next: {} } } });
    expect(await refused(call('set', { id: 'a', value: { next: { other: 1 } } }))).toMatchObject({ code: 'SCHEMA_INVALID' });
  });

  it('take changes of their file by hand, one by one: a wrong one stops no other', async () => {
    await call('register', { ...entry, initial_value: { limit: 1 } });
    write('my-worker.yaml', 'limit: wrong\n');
    write('harness.yaml', 'max_depth: 9\n');
    await live.reload();
    expect(live.current.harness.max_depth).toBe(9);
    expect(await call('get', { id: entry.id })).toMatchObject({ value: { limit: 1 } });
    expect(live.faults.map(({ problem }) => problem)).toEqual(['does not fit its schema: limit must be integer']);
    write('my-worker.yaml', 'limit: 3\n');
    await live.reload();
    expect(await call('get', { id: entry.id })).toMatchObject({ value: { limit: 3 } });
    expect(live.faults).toEqual([]);
  });

  it.each([
    ['INVALID_ID', 'register', { ...entry, id: 'Not Valid' }],
    ['INVALID_ID', 'register', { ...entry, id: '../up' }],
    ['INVALID_ID', 'register', { ...entry, id: 'con' }],
    ['INVALID_ID', 'get', { id: 'x'.repeat(65) }],
    ['SCHEMA_INVALID', 'register', { ...entry, schema: { type: 'no-such-type' } }],
    ['SCHEMA_INVALID', 'register', { ...entry, schema: 'string' }],
    ['SCHEMA_INVALID', 'register', { ...entry, initial_value: { limit: 'x' } }],
    ['NOT_FOUND', 'get', { id: 'nobody' }],
    ['NOT_FOUND', 'schema', { id: 'nobody' }],
    ['NOT_REGISTERED', 'set', { id: 'nobody', value: {} }],
  ])('answer %s of %s', async (code, name, payload) => {
    expect(await refused(call(name, payload))).toMatchObject({ code });
    expect(live.registered.all()).toEqual([]);
  });

  it('answer SCHEMA_UNAVAILABLE when their definition cannot be read', async () => {
    write('broken.schema.json', '{');
    write('broken.yaml', 'a: 1\n');
    await live.reload();
    for (const name of ['get', 'set', 'schema']) {
      expect(await refused(call(name, { id: 'broken', value: {} }))).toMatchObject({ code: 'SCHEMA_UNAVAILABLE' });
    }
  });

  it('answer ADAPTER_ERROR when the disk refuses', async () => {
    writeFileSync(dir, 'not a folder');
    expect(await refused(call('register', entry))).toMatchObject({ code: 'ADAPTER_ERROR' });
  });
});

describe('the trigger type', () => {
  it('tells of registrations, changes and deletions, with values expanded', async () => {
    const heard = events();
    await call('register', { ...entry, initial_value: { limit: '${LIMIT}' } });
    expect(await heard.next()).toEqual({
      ...entry,
      type: 'configuration',
      event_type: 'configuration:registered',
      old_value: null,
      new_value: { limit: 7 },
    });
    await call('register', entry);
    expect(await heard.next()).toMatchObject({ event_type: 'configuration:updated', old_value: { limit: 7 }, new_value: { limit: 7 } });
    await call('set', { id: entry.id, value: { limit: 8 } });
    expect(await heard.next()).toMatchObject({ event_type: 'configuration:updated', old_value: { limit: 7 }, new_value: { limit: 8 } });
    write('harness.yaml', 'max_depth: 4\n');
    await live.reload();
    expect(await heard.next()).toMatchObject({ id: 'harness', event_type: 'configuration:updated', new_value: { max_depth: 4 } });
    unlinkSync(join(dir, 'my-worker.schema.json'));
    await live.reload();
    expect(await heard.next()).toMatchObject({
      id: entry.id,
      event_type: 'configuration:deleted',
      old_value: { limit: 8 },
      new_value: null,
    });
    expect(heard.all).toHaveLength(5);
  });

  it('tells only what a binding asks for', async () => {
    const one = events({ configuration_id: 'harness' });
    const registered = events({ event_types: ['configuration:registered'] });
    bus.registerFunction({ id: 'test::no' }, () => false);
    bus.registerFunction({ id: 'test::nothing' }, () => undefined);
    const never = events({ condition_function_id: 'test::no' });
    const always = events({ condition_function_id: 'test::nothing' });
    await call('register', entry);
    await call('set', { id: 'harness', value: { max_depth: 1 } });
    expect(await one.next()).toMatchObject({ id: 'harness' });
    expect(await registered.next()).toMatchObject({ id: entry.id });
    await always.next();
    await always.next();
    expect([one.all.length, registered.all.length, never.all.length, always.all.length]).toEqual([1, 1, 0, 2]);
  });

  it('hides secrets, in our entries and in those of others', async () => {
    const heard = events();
    await call('set', { id: 'llm-router', value: { providers: { openai: { api_key: '${TOKEN}', max_tokens: 5 } } } });
    await call('register', { ...entry, initial_value: { limit: 1, api_key: '${TOKEN}' } });
    expect(await heard.next()).toMatchObject({ new_value: { providers: { openai: { api_key: '[hidden]', max_tokens: 5 } } } });
    expect(await heard.next()).toMatchObject({ new_value: { limit: 1, api_key: '[hidden]' } });
    expect(JSON.stringify([heard.all, reported])).not.toContain('sk-secret');
  });

  it('is not held up by a listener that fails', async () => {
    bus.registerFunction({ id: 'test::fails' }, () => Promise.reject(new Error('no')));
    bus.registerTrigger({ type: 'configuration', function_id: 'test::fails', config: {} });
    const heard = events();
    expect(await call('set', { id: 'harness', value: { max_depth: 1 } })).toMatchObject({ new_value: { max_depth: 1 } });
    expect(await heard.next()).toMatchObject({ id: 'harness' });
  });
});
