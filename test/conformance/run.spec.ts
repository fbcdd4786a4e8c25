import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runConformance, type ScenarioResult, scenarios } from '#libs/conformance';
import type { SessionMeta } from '#libs/contracts';
import { type EmbeddedRuntime, openRuntime } from '#libs/local';
import { brokenBus, FAULTS } from './broken-bus.js';

/** How long a scenario may wait for what a broken harness does not do, in ms. */
const LIMIT_MS = 600;

describe('a conformance run', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-conformance-'));
  let runtime: EmbeddedRuntime;
  beforeAll(async () => {
    runtime = await openRuntime({ dataDir, role: 'worker' });
  });
  afterAll(async () => {
    await runtime.close(0);
    rmSync(dataDir, { recursive: true, force: true });
  });

  const call = <T>(function_id: string, payload: object = {}): Promise<T> => runtime.bus.trigger<T>({ function_id, payload });
  const failed = (results: readonly ScenarioResult[]): string[] =>
    results.flatMap(({ id, result, why }) => (result === 'failed' ? [`${id}: ${why}`] : []));

  it('passes a harness that keeps the contract, and takes back what it made', async () => {
    const seen: string[] = [];
    // One of each kind; all of them are run over a gateway by the test of the command.
    const chosen = scenarios.filter(({ id }) =>
      ['tool-turn', 'pre-turn-veto', 'hold-execute', 'stop-stream', 'spawn', 'turn-events'].includes(id),
    );
    const told = { onStart: ({ id }: { id: string }) => seen.push(id), onResult: ({ id }: { id: string }) => seen.push(id) };
    const results = await runConformance(runtime.bus, { scenarios: chosen, ...told });
    expect(failed(results)).toEqual([]);
    expect(results.map(({ id, result }) => [id, result])).toEqual(chosen.map(({ id }) => [id, 'passed']));
    expect(seen).toEqual(chosen.flatMap(({ id }) => [id, id]));
    expect((await call<{ sessions: SessionMeta[] }>('session::list')).sessions).toEqual([]);
    const { functions } = await call<{ functions: object[] }>('engine::functions::list', { search: 'conformance', include_internal: true });
    const bound = await call<{ registered_triggers: object[] }>('engine::registered-triggers::list', { search: 'conformance' });
    const { models } = await call<{ models: { provider: string }[] }>('router::models::list');
    expect([functions, bound.registered_triggers, models.filter(({ provider }) => provider.includes('conformance'))]).toEqual([[], [], []]);
  });

  it('ends when it is told to, and takes back what it made', async () => {
    const stop = new AbortController();
    const results = await runConformance(runtime.bus, { signal: stop.signal, onStart: ({ id }) => id === 'conversation' && stop.abort() });
    expect(results.at(-1)?.id).toBe('new-session');
    expect((await call<{ sessions: SessionMeta[] }>('session::list')).sessions).toEqual([]);
  });

  it.each(FAULTS.map((fault) => [fault.does, fault] as const))('fails a harness that %s', async (_, fault) => {
    const chosen = scenarios.filter(({ id }) => fault.breaks.includes(id));
    expect(chosen).toHaveLength(fault.breaks.length);
    const results = await runConformance(brokenBus(runtime.bus, fault), { scenarios: chosen, limitMs: LIMIT_MS });
    expect(results.filter(({ result, why = '' }) => result !== 'failed' || why === '').map(({ id }) => id)).toEqual([]);
  });

  it('has no scenario that nothing fails', () => {
    const broken = new Set(FAULTS.flatMap(({ breaks }) => breaks));
    expect(scenarios.filter(({ id }) => !broken.has(id)).map(({ id }) => id)).toEqual([]);
  });

  it('skips what takes a worker that is not there, and says which', async () => {
    const away = brokenBus(runtime.bus, {
      does: 'is without a router',
      breaks: [],
      answer: async ({ function_id }, ask) => {
        const answer = (await ask()) as { functions?: { function_id: string }[] };
        if (function_id !== 'engine::functions::info') return answer;
        const functions = answer.functions?.map((row) => (row.function_id.startsWith('router::') ? { ...row, error: 'not_found' } : row));
        return { ...answer, functions };
      },
    });
    const results = await runConformance(away, {
      scenarios: scenarios.filter(({ id }) => id === 'plain-answer' || id === 'unknown-sessions'),
    });
    expect(results).toEqual([
      expect.objectContaining({ id: 'unknown-sessions', result: 'passed' }),
      expect.objectContaining({ id: 'plain-answer', result: 'skipped', why: 'there is no router::provider::register' }),
    ]);
  });
});
