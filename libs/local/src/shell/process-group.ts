import { spawn } from 'node:child_process';
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
