import { access, constants, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { usageError } from '../cli/exit.js';

/** Where the data folder's path comes from. */
export type DataDirSource = '--data-dir' | 'HARNESS_DATA_DIR' | 'XDG_DATA_HOME' | 'default';

/** The data folder: the option, else `HARNESS_DATA_DIR`, else `$XDG_DATA_HOME/harness`, else `~/.local/share/harness`. */
export function dataDir(option: string | undefined, env: NodeJS.ProcessEnv): { path: string; source: DataDirSource } {
  if (option !== undefined) {
    if (option.trim() === '' || option.includes('\0')) throw usageError('--data-dir must name a folder');
    return { path: resolve(option), source: '--data-dir' };
  }
  const own = env['HARNESS_DATA_DIR'] ?? '';
  if (own !== '') return { path: resolve(own), source: 'HARNESS_DATA_DIR' };
  const xdg = env['XDG_DATA_HOME'] ?? '';
  // The base directory specification says to ignore a relative path.
  if (isAbsolute(xdg)) return { path: join(xdg, 'harness'), source: 'XDG_DATA_HOME' };
  return { path: join(env['HOME'] ?? homedir(), '.local', 'share', 'harness'), source: 'default' };
}

/** The folder itself, or the nearest one above it that exists. */
export async function nearestExisting(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    try {
      await access(at, constants.F_OK);
      return at;
    } catch (error) {
      if (dirname(at) === at) throw error;
    }
  }
}

/** Why a path cannot be a data folder, or null: it, or where it would be made, must be a folder that we may write. */
export async function folderFault(path: string): Promise<string | null> {
  try {
    const there = await nearestExisting(path);
    if (!(await stat(there)).isDirectory()) return `${there} is not a folder`;
    await access(there, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'EACCES' ? 'it may not be written' : code === 'EROFS' ? 'it is on a file system that is read only' : message;
  }
}
