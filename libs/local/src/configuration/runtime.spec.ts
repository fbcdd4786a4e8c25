import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { EmbeddedRuntime, RuntimeRole } from '../runtime/index.js';
import { openRuntime } from '../runtime/index.js';

let dataDir: string;
let runtime: EmbeddedRuntime | undefined;
const said: string[] = [];

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'runtime-config-'));
  mkdirSync(join(dataDir, 'config'));
  said.length = 0;
});
afterEach(async () => {
  await runtime?.close(0);
  rmSync(dataDir, { recursive: true, force: true });
});

const write = (name: string, text: string): void => writeFileSync(join(dataDir, 'config', name), text, { mode: 0o600 });
const open = async (role: RuntimeRole): Promise<EmbeddedRuntime> => {
  runtime = await openRuntime({ dataDir, role, log: (level, message) => said.push(`${level} ${message}`) });
  return runtime;
};
const until = (what: () => unknown): Promise<unknown> => expect.poll(what, { interval: 10, timeout: 8_000 }).toBeTruthy();
interface TriggerRow {
  trigger_type: string;
  config: { [key: string]: unknown };
}
async function bindingsOf(functionId: string): Promise<TriggerRow[]> {
  const found = await (runtime as EmbeddedRuntime).bus.trigger<{ registered_triggers: TriggerRow[] }>({
    function_id: 'engine::registered-triggers::list',
    payload: { function_id: functionId },
  });
  return found.registered_triggers;
}

it.each(['worker', 'client'] as const)('a %s takes changes while it runs, and shows what is wrong', async (role) => {
  write('harness.yaml', 'max_depth: 1\n');
  const { settings, configurationFaults } = await open(role);
  expect(settings.current().max_depth).toBe(1);
  write('harness.yaml', 'max_depth: 2\n');
  await until(() => settings.current().max_depth === 2);
  write('harness.yaml', 'max_depth: two\n');
  await until(() => configurationFaults.call(runtime).length > 0);
  expect(configurationFaults.call(runtime)[0]).toContain('harness.yaml:1: max_depth must be a whole number');
  expect(settings.current().max_depth).toBe(2);
  expect(said.some((line) => line.startsWith('warn configuration: ') && line.includes('max_depth'))).toBe(true);
});

it('a reader takes changes only when it is told to', async () => {
  const { settings, bus } = await open('reader');
  write('harness.yaml', 'max_depth: 2\n');
  expect(await bus.trigger({ function_id: 'harness::on-config-change', payload: { id: 'harness' } })).toEqual({ ok: true });
  expect(settings.current().max_depth).toBe(2);
  expect(await bindingsOf('harness::sweep-pending')).toEqual([]);
});

it('harness::on-config-change is bound to the entry, and fails when its file is wrong', async () => {
  const { bus, settings } = await open('worker');
  expect(await bindingsOf('harness::on-config-change')).toMatchObject([
    { trigger_type: 'configuration', config: { configuration_id: 'harness' } },
  ]);
  write('harness.yaml', 'max_depth: none\n');
  await expect(bus.trigger({ function_id: 'harness::on-config-change', payload: { id: null } })).rejects.toThrow(
    /^configuration\/invalid: /,
  );
  expect(settings.current().max_depth).toBe(3);
});

it('the sweep is bound to the expression in force, once', async () => {
  const { settings } = await open('worker');
  const expressions = async (): Promise<unknown[]> =>
    (await bindingsOf('harness::sweep-pending')).map(({ config }) => config['expression']);
  expect(await expressions()).toEqual(['0 * * * * *']);
  write('harness.yaml', 'sweep_expression: "*/5 * * * * *"\n');
  await until(() => settings.current().sweep_expression === '*/5 * * * * *');
  expect(await expressions()).toEqual(['*/5 * * * * *']);
  write('harness.yaml', 'sweep_expression: "0 0 0 31 2 *"\n');
  await until(() => runtime?.configurationFaults().length === 1);
  expect(await expressions()).toEqual(['*/5 * * * * *']);
});

it('a start still fails when a file is not valid', async () => {
  write('harness.yaml', 'max_depth: none\n');
  await expect(openRuntime({ dataDir, role: 'worker' })).rejects.toThrow(/^configuration\/invalid: /);
});
