import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errnoOf } from '../confine/index.js';

/** Variable that all processes of a command inherit; its value names the commands that they run in. */
export const CALL_VARIABLE = 'HARNESS_CALL';

type Signal = 'SIGTERM' | 'SIGKILL';
/** How many processes are looked at in one stretch. */
const STRETCH = 64;

/** Sends a signal to all processes of a group; false when none is left. */
export function signalGroup(group: number, signal: Signal | 0): boolean {
  if (process.platform === 'win32') return signalTree(group, signal);
  return sent(-group, signal);
}

/**
 * The processes of one command. On Linux these are, besides its group, those of its session, those that carry its mark, wherever they
 * went, and the children of all of these; one that was found stays found. Where there is no `/proc` they are its group.
 */
export class CommandProcesses {
  /** When the first process started, in ticks since boot; 0 where unknown. */
  private readonly since: number;
  /** What was found, with the times of start, which tell a process from a later one with the same id. */
  private readonly known = new Map<number, number>();

  constructor(
    /** The process group, and on POSIX systems the session too: the id of the first process. */
    readonly group: number,
    /** Unguessable part of the value of `CALL_VARIABLE`. */
    readonly mark: string,
  ) {
    this.since = statOf(group)?.start ?? 0;
  }

  /** Sends a signal to every process; false when none is left. */
  async signal(signal: Signal): Promise<boolean> {
    const names = await readdir('/proc').catch(() => null);
    if (names === null) return signalGroup(this.group, signal);
    let any = false;
    for (const pid of await this.find(names)) any = sent(pid, signal) || any;
    return any;
  }

  private async find(names: readonly string[]): Promise<Iterable<number>> {
    const running = new Map<number, Stat>();
    let looked = 0;
    for (const name of names) {
      if (!/^\d+$/.test(name)) continue;
      if (++looked % STRETCH === 0) await nextTurn();
      const pid = Number(name);
      const stat = statOf(pid);
      // One that has ended and that its parent has not taken note of runs no more.
      if (stat === null || stat.state === 'Z' || stat.state === 'X') continue;
      running.set(pid, stat);
      if (await this.isMine(pid, stat)) this.known.set(pid, stat.start);
    }
    for (const [pid, start] of this.known) if (running.get(pid)?.start !== start) this.known.delete(pid);
    for (let before = -1; before !== this.known.size; ) {
      before = this.known.size;
      for (const [pid, { parent, start }] of running) if (this.known.has(parent)) this.known.set(pid, start);
    }
    return this.known.keys();
  }

  private async isMine(pid: number, { group, session, start }: Stat): Promise<boolean> {
    if (group === this.group || session === this.group) return true;
    return start >= this.since && (await environmentOf(pid)).includes(this.mark);
  }
}

/** False when there is nobody to send to, or when it runs as somebody else and cannot be reached. */
function sent(target: number, signal: Signal | 0): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ESRCH' || errnoOf(error) === 'EPERM') return false;
    throw error;
  }
}

/** Windows has no groups and no signals: the tree below a process is ended by a tool of the system. */
function signalTree(pid: number, signal: Signal | 0): boolean {
  if (signal === 0) return false;
  spawn('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore' }).on('error', () => undefined);
  return true;
}

interface Stat {
  state: string | undefined;
  parent: number;
  group: number;
  session: number;
  start: number;
}

/** Comes from memory of the system and waits for nobody, unlike the environment. */
function statOf(pid: number): Stat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null; // gone, or not Linux
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const at = (i: number): number => Number(fields[i]);
  return { state: fields[0], parent: at(1), group: at(2), session: at(3), start: at(19) };
}

/** Empty for one that is gone or of another user. */
const environmentOf = (pid: number): Promise<Buffer> => readFile(`/proc/${pid}/environ`).catch(() => Buffer.alloc(0));
