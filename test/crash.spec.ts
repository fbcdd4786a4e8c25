import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { buildTools } from './support/build-tools.js';

it('C03 C08 C10 I2 I4 I5 I6 I10 a worker that is killed at any durable write, or at any time, comes back and finishes its turns', async () => {
  const main = join(await buildTools(), 'test', 'crash', 'main.js');
  const args = [main, '--short', '--minutes', '4']; // a busy machine comes to fewer deaths at random
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 590_000 }).catch(
    (error: unknown) => error as { stdout: string },
  );
  const [counts = ''] = stdout.trim().split('\n').slice(-1);
  console.log(counts);
  expect(stdout.split('\n').filter((line) => /^(VIOLATION|NOT REACHED)/.test(line))).toEqual([]);
  expect(counts).toMatch(/^\d+ deaths, 0 violations, 0 points not reached/);
  expect(Number.parseInt(counts, 10)).toBeGreaterThanOrEqual(80);
}, 600_000);
