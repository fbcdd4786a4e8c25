import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';

/** True while the process is there and not a zombie. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/^\d+ \(.*\) [ZX]/s.test(stat);
}

/** The process id that a command writes to a file, as soon as it is there. */
export async function pidIn(root: string, file: string): Promise<number> {
  for (let i = 0; i < 1_000; i++) {
    const text = await readFile(join(root, file), 'utf8').catch(() => '');
    if (text.endsWith('\n')) return Number(text);
    await pause(10);
  }
  throw new Error(`${file} was not written`);
}

/** Waits for a process to be gone. */
export async function gone(pid: number): Promise<void> {
  for (let i = 0; i < 1_000 && (await isAlive(pid)); i++) await pause(10);
  expect(await isAlive(pid)).toBe(false);
}
