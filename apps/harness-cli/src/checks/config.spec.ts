import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { checkConfig } from './store.js';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'doctor-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));
const write = (name: string, text: string): void => {
  mkdirSync(join(dataDir, 'config'), { recursive: true });
  writeFileSync(join(dataDir, 'config', name), text, { mode: 0o600 });
};

it('has nothing to say without files, and names those that are read', async () => {
  expect(await checkConfig(dataDir, {})).toEqual({ name: 'config', status: 'ok', detail: 'none, the defaults apply' });
  write('harness.yaml', `max_depth: \${DEPTH}\n`);
  write('notes.yaml', 'x: 1\n');
  expect(await checkConfig(dataDir, { DEPTH: '2' })).toEqual({ name: 'config', status: 'ok', detail: 'harness.yaml' });
});

it('C56 fails with every fault of every file, and with none of their values', async () => {
  write('harness.yaml', 'max_depth: deep\n');
  write('llm-router.yaml', 'providers: { openai: { api_key: 7, api_url: "ftp://sk-secret-value" } }\n');
  const found = await checkConfig(dataDir, {});
  expect(found).toMatchObject({ status: 'fail', advice: expect.stringContaining('goes on with the values before') as string });
  for (const part of ['harness.yaml:1: max_depth', 'llm-router.yaml:1: providers.openai.api_key', 'providers.openai.api_url'])
    expect(found.detail).toContain(part);
  expect(JSON.stringify(found)).not.toContain('sk-secret-value');
});

it('warns of files that are not read, and of entries of other workers that are wrong', async () => {
  write('harness.yml', 'max_depth: 1\n');
  write('other.schema.json', '{');
  expect(await checkConfig(dataDir, {})).toMatchObject({
    status: 'warn',
    detail: expect.stringMatching(/harness\.yml.*other\.schema\.json/) as string,
  });
});
