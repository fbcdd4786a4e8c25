import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedRuntime, openRuntime } from '#libs/local';
import { wire, withoutDescriptions } from './support/wire.js';

interface Info {
  function_id: string;
  description?: string;
  request_schema?: unknown;
  response_schema?: unknown;
  metadata?: { [key: string]: unknown };
}
interface TypeInfo {
  id: string;
  description?: string;
  configuration_schema?: unknown;
}

describe('what a running harness publishes on its bus', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-contract-'));
  let runtime: EmbeddedRuntime;
  const ask = <T>(function_id: string, payload: unknown): Promise<T> => runtime.bus.trigger<T>({ function_id, payload });

  beforeAll(async () => {
    runtime = await openRuntime({ dataDir, role: 'reader' });
  });
  afterAll(async () => {
    await runtime.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it.each(wire.functions)('$name has the schemas of the contract', async (published) => {
    const info = await ask<Info>('engine::functions::info', { function_id: published.name });
    expect(withoutDescriptions(info.request_schema)).toEqual(published.request_schema);
    expect(withoutDescriptions(info.response_schema)).toEqual(published.response_schema);
    expect(info.description).toMatch(/\w+ \w+/);
  });

  it.each(wire.triggers)('$name takes the binding configuration of the contract', async (published) => {
    const info = await ask<TypeInfo>('engine::triggers::info', { id: published.name });
    expect(withoutDescriptions(info.configuration_schema)).toEqual(published.invocation_schema);
    expect(info.description).toMatch(/\w+ \w+/);
  });

  it('publishes the nine functions and seven trigger types of the contract, and no more of its own', async () => {
    const { functions } = await ask<{ functions: Info[] }>('engine::functions::list', { prefix: 'harness::', include_internal: true });
    expect(functions.map((row) => row.function_id)).toEqual(wire.functions.map(({ name }) => name).sort());
    const { triggers } = await ask<{ triggers: TypeInfo[] }>('engine::triggers::list', { prefix: 'harness::' });
    expect(triggers.map(({ id }) => id)).toEqual(wire.triggers.map(({ name }) => name).sort());
  });

  it('publishes schemas that are valid themselves, which nothing checks at run time', async () => {
    const ajv = new Ajv({ strict: false, logger: false });
    addFormats.default(ajv);
    const { functions } = await ask<{ functions: Info[] }>('engine::functions::list', { include_internal: true });
    const { triggers } = await ask<{ triggers: TypeInfo[] }>('engine::triggers::list', {});
    expect(functions.length).toBeGreaterThan(50);
    const schemas: [string, unknown][] = [];
    for (const { function_id } of functions) {
      const info = await ask<Info>('engine::functions::info', { function_id });
      schemas.push([`${function_id} request`, info.request_schema], [`${function_id} response`, info.response_schema]);
    }
    for (const { id } of triggers)
      schemas.push([`${id} configuration`, (await ask<TypeInfo>('engine::triggers::info', { id })).configuration_schema]);
    const wrong = schemas.filter(([, schema]) => schema !== null && schema !== undefined && ajv.validateSchema(schema as object) !== true);
    expect(wrong.map(([name]) => name)).toEqual([]);
  });

  it('lists by itself only what is meant for everybody', async () => {
    const { functions } = await ask<{ functions: Info[] }>('engine::functions::list', { prefix: 'harness::' });
    expect(functions.map((row) => row.function_id)).toEqual(['harness::spawn', 'harness::status']);
    const turn = await ask<Info>('engine::functions::info', { function_id: 'harness::turn' });
    expect(turn.metadata).toEqual({ internal: true, trace_hidden: true });
  });
});
