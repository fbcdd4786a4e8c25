import { beforeAll, expect, it } from 'vitest';
import { ensureBuilt } from '../../cli/harness-cli.js';
import { attackGateway } from './campaign.js';

beforeAll(ensureBuilt, 180_000);

it('whatever peers send, the worker is up, its memory is bounded and another client does not notice', async () => {
  const report = await attackGateway(Number(process.env['FUZZ_SEED'] ?? 1), 1, 1);
  expect(report.faults).toEqual([]);
  expect(report.steady_calls).toBeGreaterThan(10);
  expect(report.memory_after_mb).toBeLessThan(report.memory_before_mb + 400);
}, 120_000);
