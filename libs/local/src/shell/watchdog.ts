import { type ChildProcess, spawn } from 'node:child_process';
import type { CommandProcesses } from './command-processes.js';

/**
 * Reads `add <group> <mark>` and `del <group> <mark>`; when its input ends, harness is gone, and what it left running is ended: the groups,
 * and where the system shows environments, whatever carries a mark.
 */
export const WATCHDOG_SCRIPT = `calls=''
while read -r op group mark; do
  case $op in
    add) calls="$calls $group:$mark" ;;
    del) kept=''; for c in $calls; do [ "$c" = "$group:$mark" ] || kept="$kept $c"; done; calls=$kept ;;
  esac
done
marks=''
for c in $calls; do
  kill -s KILL -- "-\${c%%:*}" 2>/dev/null
  marks="$marks -e \${c#*:}"
done
[ -n "$marks" ] && for round in 1 2 3 4 5 6 7 8; do
  left=$(grep -lsF $marks /proc/[0-9]*/environ)
  [ -n "$left" ] || break
  for file in $left; do pid=\${file%/environ}; kill -s KILL "\${pid#/proc/}" 2>/dev/null; done
done
`;

/**
 * Ends commands that this process leaves behind, also when it is killed without a chance to do so itself: a small
 * shell outlives it by a moment. It is started before the first command and holds nothing open.
 */
export class Watchdog {
  private shell: ChildProcess | undefined;

  /** Starts the shell, so that it stands before a command begins. */
  prepare(): void {
    if (process.platform !== 'win32') this.shell ??= this.start();
  }

  add({ group, mark }: CommandProcesses): void {
    this.tell(`add ${group} ${mark}\n`);
  }

  remove({ group, mark }: CommandProcesses): void {
    if (this.shell !== undefined) this.tell(`del ${group} ${mark}\n`);
  }

  /** Ends the shell; commands that are still named are ended by it. */
  close(): void {
    this.shell?.stdin?.end();
    this.shell = undefined;
  }

  private tell(line: string): void {
    if (process.platform === 'win32') return;
    this.shell ??= this.start();
    this.shell.stdin?.write(line);
  }

  private start(): ChildProcess {
    const shell = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: {}, cwd: '/' });
    const gone = (): void => {
      if (this.shell === shell) this.shell = undefined;
    };
    // Without it commands still end by their own limits and by the shutdown of this process; nothing else depends on it.
    shell.on('error', gone).on('exit', gone);
    shell.stdin?.on('error', gone);
    shell.unref();
    (shell.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    return shell;
  }
}
