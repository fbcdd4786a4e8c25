import { randomBytes } from 'node:crypto';
import { open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../sqlite/folder.js';

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/**
 * Writes a file so that its old or its new text is there at any moment, also after a power cut. Follows a link; keeps the
 * permissions of a file that is there, and gives a new one to its owner alone.
 */
export async function writeFileAtomic(path: string, text: string): Promise<void> {
  makeFolder(dirname(path));
  const target = await unlessMissing(realpath(path), path);
  const mode = await unlessMissing(
    stat(target).then((found) => found.mode & 0o777),
    0o600,
  );
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`);
  const file = await open(temporary, 'wx', 0o600);
  try {
    try {
      await file.writeFile(text);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary);
    throw error;
  }
  await syncFolder(dirname(target));
}

async function unlessMissing<T>(found: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await found;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return otherwise;
    throw error;
  }
}

/** Makes the new name durable. Windows has no such thing. */
async function syncFolder(dir: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
