import { randomUUID } from 'node:crypto';
import { errorMessage } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { ScriptedProvider } from './model.js';
import type { Scenario, ScenarioResult } from './scenario.js';
import { scenarios } from './scenarios/index.js';
import { missing, Trial } from './trial.js';

/** How long one scenario may take, in ms, and how long taking back what it made. */
const LIMIT_MS = 30_000;

export interface ConformanceOptions {
  /** Which scenarios to run, in this order; all by default. */
  scenarios?: readonly Scenario[];
  /** How long one scenario may take, in ms. */
  limitMs?: number;
  /** Ends the run: what the scenario under way made is taken back, and the rest is left out. */
  signal?: AbortSignal;
  /** Told what is about to run. */
  onStart?: (scenario: Scenario) => unknown;
  /** Told what came of each, at once. */
  onResult?: (result: ScenarioResult) => unknown;
}

/**
 * Runs the scenarios one after the other against the harness at the other end of a bus. All that a run makes has a name of its own
 * that no other run has, and is taken back: functions, bindings, models and sessions.
 */
export async function runConformance(bus: Bus, options: ConformanceOptions = {}): Promise<ScenarioResult[]> {
  const { scenarios: chosen = scenarios, signal, onStart, onResult } = options;
  const run = `conformance-${randomUUID().slice(0, 8)}`;
  const provider = new ScriptedProvider(bus, run);
  const results: ScenarioResult[] = [];
  const isEnded = (): boolean => signal?.aborted === true;
  try {
    const absent = await missing(bus, [...new Set(chosen.flatMap(({ needs = [] }) => needs))]);
    if (!absent.includes('router::provider::register')) await provider.offer(chosen.map(({ id, model }) => ({ id, ...model })));
    for (const scenario of chosen) {
      if (isEnded()) break;
      onStart?.(scenario);
      const lacking = (scenario.needs ?? []).filter((id) => absent.includes(id));
      const result = lacking.length > 0 ? skipped(scenario, lacking) : await tried(scenario, bus, provider, run, options);
      if (isEnded()) break;
      results.push(result);
      onResult?.(result);
    }
    return results;
  } finally {
    await provider.withdraw();
  }
}

const skipped = ({ id, title }: Scenario, lacking: readonly string[]): ScenarioResult => ({
  id,
  title,
  result: 'skipped',
  ms: 0,
  why: `there is no ${lacking.join(', ')}`,
});

async function tried(
  scenario: Scenario,
  bus: Bus,
  provider: ScriptedProvider,
  run: string,
  { limitMs = LIMIT_MS, signal }: ConformanceOptions,
): Promise<ScenarioResult> {
  const { id, title } = scenario;
  const name = `${run}-${id}`;
  const startedAt = performance.now();
  const trial = new Trial(bus, provider.of(id), { name, limitMs, signal });
  const faults: string[] = [];
  await scenario.run(trial).catch((error: unknown) => faults.push(errorMessage(error)));
  const ms = Math.round(performance.now() - startedAt);
  await trial.cleanUp().catch((error: unknown) => faults.push(`what it made could not be taken back: ${errorMessage(error)}`));
  return faults.length === 0 ? { id, title, result: 'passed', ms } : { id, title, result: 'failed', ms, why: faults.join('; ') };
}
