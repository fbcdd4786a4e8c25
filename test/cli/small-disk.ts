import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const run = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;

function mounted(): string | null {
  const path = mkdtempSync(join(tmpdir(), 'harness-disk-'));
  if (run('mount', '-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', path)) return path;
  rmdirSync(path);
  return null;
}

function unmount(path: string): void {
  if (!run('umount', path)) run('umount', '-l', path);
  rmdirSync(path);
}

/** True where a test may make a disk of its own: as root, outside of most containers. */
export const canMount = ((): boolean => {
  const path = process.getuid?.() === 0 ? mounted() : null;
  if (path !== null) unmount(path);
  return path !== null;
})();

/** A disk of 3 MB, which is gone after the test. */
export class SmallDisk {
  private constructor(readonly path: string) {}

  static make(): SmallDisk {
    const path = mounted();
    if (path === null) throw new Error('no disk could be mounted');
    onTestFinished(() => unmount(path));
    return new SmallDisk(path);
  }

  /** Writes until not one byte more fits. */
  fill(): void {
    const file = openSync(join(this.path, 'filler'), 'a');
    try {
      for (const size of [65_536, 4_096, 1]) writeWhileItFits(file, Buffer.alloc(size));
    } finally {
      closeSync(file);
    }
  }

  /** Frees what was filled. */
  free(): void {
    rmSync(join(this.path, 'filler'));
  }
}

function writeWhileItFits(file: number, bytes: Buffer): void {
  try {
    for (;;) writeSync(file, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
