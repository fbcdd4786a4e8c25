import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
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
