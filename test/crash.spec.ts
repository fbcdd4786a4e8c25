import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { buildTools } from './support/build-tools.js';

it('C03 C08 C10 I2 I4 I5 I6 a worker that is killed at a durable write, or at any time, comes back and finishes its turns; `npm run test:crash` does so at all of them', async () => {
  const main = join(await buildTools(), 'test', 'crash', 'main.js');
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--tests']).catch((error: unknown) => error as { stdout: string });
  expect(stdout).toMatch(/\b1[0-9] deaths, 0 violations, 0 points not reached/);
}, 120_000);
