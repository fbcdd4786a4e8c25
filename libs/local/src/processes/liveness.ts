import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

const read = (make: () => string): string => {
  try {
    return make();
  } catch {
    return ''; // not on this system: the other parts of the token still tell
  }
};

/** Names the place where process ids mean the same: host, boot and process namespace. */
export const hostToken = (): string =>
  [
    hostname(),
    read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    read(() => readlinkSync('/proc/self/ns/pid')),
  ].join('|');

/** When a process started, in ticks since boot; tells a process from a later one with the same id. Empty where unknown. */
export function startToken(pid: number): string {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** True when a process of this host runs and is the one that `token` names. */
export function isRunning(pid: number, token: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return token === '' || startToken(pid) === token;
}
