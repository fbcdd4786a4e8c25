import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { errnoOf } from '../confine/index.js';

/** Sends a signal to all processes of a group; false when none is left. */
export function signalGroup(group: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  if (process.platform === 'win32') return signalTree(group, signal);
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    // EPERM: what is left runs as somebody else and cannot be reached.
    if (errnoOf(error) === 'ESRCH' || errnoOf(error) === 'EPERM') return false;
    throw error;
  }
}

/** Windows has no groups and no signals: the tree below a process is ended by a tool of the system. */
function signalTree(pid: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  if (signal === 0) return false;
  spawn('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore' }).on('error', () => undefined);
  return true;
}

/**
 * True while a process of the group runs. Processes that have ended and that their parent has not taken note of still
 * count for the system; here they do not, where the system lets us see the difference.
 */
export async function isGroupRunning(group: number): Promise<boolean> {
  if (!signalGroup(group, 0)) return false;
  if (process.platform !== 'linux') return true;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(pgrp) === group && state !== 'Z' && state !== 'X') return true;
  }
  return false;
}
