import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { buildTools } from './support/build-tools.js';
import { hasRedis } from './support/redis-server.js';

/** Kills processes as the arguments say; gives the faults that were found, and the last line, which sums up. */
async function deaths(...options: string[]): Promise<{ faults: string[]; counts: string }> {
  const main = join(await buildTools(), 'test', 'crash', 'main.js');
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...options], { timeout: 590_000 }).catch(
    (error: unknown) => error as { stdout: string },
  );
  const [counts = ''] = stdout.trim().split('\n').slice(-1);
  console.log(counts);
  return { faults: stdout.split('\n').filter((line) => /^(VIOLATION|NOT REACHED)/.test(line)), counts };
}

describe('a worker that is killed', () => {
  it('C03 C08 C10 I2 I4 I5 I6 I10 at any durable write, or at any time, comes back and finishes its turns', async () => {
    const { faults, counts } = await deaths('--short', '--minutes', '4'); // a busy machine comes to fewer deaths at random
    expect(faults).toEqual([]);
    expect(counts).toMatch(/^\d+ deaths, 0 violations, 0 points not reached/);
    expect(Number.parseInt(counts, 10)).toBeGreaterThanOrEqual(80);
  }, 600_000);

  it.skipIf(!hasRedis)(
    'C08 I2 I4 I5 I6 I10 beside others that share its folder by Redis leaves nothing undone',
    async () => {
      const { faults, counts } = await deaths('--workers', '3', '--deaths', '20', '--lanes', '1', '--minutes', '0.25');
      expect(faults).toEqual([]);
      expect(counts).toMatch(/^[1-9]\d* deaths, 0 violations/);
    },
    600_000,
  );
});
