import { describe, expect, it } from 'vitest';
import { Campaign } from './campaign.js';

/** The short form; `npm run test:fuzz` plays longer. */
const TURNS = 250;
const SHORT_MS = 20_000;
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);

describe('a model that keeps to no rule', () => {
  it('ends every turn, reaches nothing outside the policy, and leaves sessions that go on', async () => {
    const report = await Campaign.run(SEED, TURNS, Date.now() + SHORT_MS);
    expect(report.faults.slice(0, 20)).toEqual([]);
    expect(report.turns).toBeGreaterThanOrEqual(50);
    expect(Math.min(report.calls, report.children)).toBeGreaterThan(0);
  }, 60_000);
});
