import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder with what is missing above it, mode 0700, and throws what the system says where that cannot be. Node's
 * own recursive mode never returns for a folder whose parent exists and answers ENOENT, such as one below /proc.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  let folder = resolve(path);
  while (!isThere(folder)) {
    missing.push(folder);
    const parent = dirname(folder);
    if (parent === folder) break;
    folder = parent;
  }
  for (const next of missing.reverse()) makeOne(next);
  if (missing.length === 0 && !statSync(path).isDirectory()) mkdirSync(path); // throws EEXIST, with the path
}

function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Another process may make it at the same moment. */
function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isThere(path)) throw error;
  }
}
