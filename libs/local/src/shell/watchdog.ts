import { type ChildProcess, spawn } from 'node:child_process';

/** Reads `add <group>` and `del <group>`; when its input ends, this process is gone and what it left running is ended. */
export const WATCHDOG_SCRIPT = `groups=''
while read -r op id; do
  case $op in
    add) groups="$groups $id" ;;
    del) kept=''; for g in $groups; do [ "$g" = "$id" ] || kept="$kept $g"; done; groups=$kept ;;
  esac
done
for g in $groups; do kill -s KILL -- "-$g" 2>/dev/null; done
`;

/**
 * Ends process groups that this process leaves behind, also when it is killed without a chance to do so itself: a small
 * shell outlives it by a moment. It is started before the first command and holds nothing open.
 */
export class Watchdog {
  private shell: ChildProcess | undefined;

  /** Starts the shell, so that it stands before a command begins. */
  prepare(): void {
    if (process.platform !== 'win32') this.shell ??= this.start();
  }

  add(group: number): void {
    this.tell(`add ${group}\n`);
  }

  remove(group: number): void {
    if (this.shell !== undefined) this.tell(`del ${group}\n`);
  }

  /** Ends the shell; groups that are still named are ended by it. */
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
