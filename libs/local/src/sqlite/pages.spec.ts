import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { DATABASE_FILE, openDatabase } from './database.js';
import { checkPages } from './pages.js';

async function filled(): Promise<{ dataDir: string; path: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'pages-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const db = await openDatabase({ dataDir });
  const insert = db.prepare('INSERT INTO idempotency (key, answer, expires_at) VALUES (?, ?, ?)');
  for (let n = 0; n < 500; n += 1) insert.run(`k${n}`, 'x'.repeat(200), n);
  db.close();
  return { dataDir, path: join(dataDir, DATABASE_FILE) };
}

it('finds nothing in a database that is whole', async () => {
  const { dataDir, path } = await filled();
  expect(checkPages(dataDir)).toEqual({ read: true, bytes: statSync(path).size, faults: [] });
});

it('finds a page that was written over, and names at most a few faults', async () => {
  const { dataDir, path } = await filled();
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(4096 * 4, 0xa5), 0, 4096 * 4, statSync(path).size - 4096 * 5);
  closeSync(file);
  const { read, faults } = checkPages(dataDir);
  expect(read).toBe(true);
  expect(faults.length).toBeGreaterThan(0);
  expect(faults.length).toBeLessThan(12);
});

it('does not read one that is too large', async () => {
  const { dataDir } = await filled();
  expect(checkPages(dataDir, 1024)).toMatchObject({ read: false, faults: [] });
});
