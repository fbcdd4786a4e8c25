import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from './database.js';
import { makeFolder } from './folder.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'harness-folder-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('the data folder', () => {
  it('is made with what is missing above it, for its owner only', () => {
    makeFolder(join(root, 'a', 'b', 'c'));
    makeFolder(join(root, 'a', 'b', 'c'));
    expect(statSync(join(root, 'a', 'b', 'c')).mode & 0o777).toBe(0o700);
  });

  it('is refused at once where it cannot be made', async () => {
    writeFileSync(join(root, 'file'), '');
    await expect(openDatabase({ dataDir: join(root, 'file', 'x') })).rejects.toThrow(/harness\/store_unwritable/);
    await expect(openDatabase({ dataDir: join(root, 'file') })).rejects.toThrow(/harness\/store_unwritable/);
  });

  it.runIf(existsSync('/proc/self'))('does not wait for ever below /proc', async () => {
    await expect(openDatabase({ dataDir: '/proc/harness/data' })).rejects.toThrow(/harness\/store_unwritable/);
  });
});
