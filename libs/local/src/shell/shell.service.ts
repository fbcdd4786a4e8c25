import { Inject, Injectable, type OnModuleDestroy, Optional } from '@nestjs/common';
import { CONFINE_SETTINGS, type ConfineSettings, type FilesystemScope, Scope, workingDirectorySettings } from '../confine/index.js';
import { type CommandResult, runCommand } from './command.js';
import { signalGroup } from './command-processes.js';
import { commandEnvironment } from './environment.js';
import { ShellError, shellError } from './errors.js';
import { secretsOf, withoutSecrets } from './secrets.js';
import { Watchdog } from './watchdog.js';

export interface ExecRequest {
  command: string;
  args?: string[] | null;
  cwd?: string | null;
  env?: { [name: string]: string } | null;
  stdin?: string | null;
  timeout_ms?: number | null;
  target?: { kind: string } | null;
  fs_scope?: FilesystemScope | null;
}

export const DEFAULT_TIMEOUT_MS = 10_000;
export const MAX_TIMEOUT_MS = 120_000;

/** Runs commands and knows which are running, so that none outlives the process. */
@Injectable()
export class ShellService implements OnModuleDestroy {
  private readonly groups = new Set<number>();
  private readonly running = new Set<Promise<CommandResult>>();
  private readonly watchdog = new Watchdog();
  private readonly stopping = new AbortController();
  private readonly settings: ConfineSettings;
  private readonly onExit = (): void => {
    for (const group of this.groups) signalGroup(group, 'SIGKILL');
  };

  constructor(@Optional() @Inject(CONFINE_SETTINGS) settings: ConfineSettings | undefined) {
    this.settings = settings ?? workingDirectorySettings;
    process.on('exit', this.onExit);
  }

  /** @throws ShellError when the command cannot be started; a command that fails is a result. */
  async exec(request: ExecRequest, signal: AbortSignal): Promise<CommandResult> {
    if ((request.target ?? null) !== null) throw new ShellError('S300', 'there is no sandbox here; leave out target');
    const values = this.settings.current();
    try {
      const scope = await Scope.open(values, request.fs_scope);
      const cwd = await scope.openFolder(request.cwd ?? '.');
      let result: CommandResult;
      try {
        signal.throwIfAborted();
        this.watchdog.prepare();
        result = await this.track(
          runCommand({
            ...programOf(request),
            cwd: cwd.at('.'),
            env: commandEnvironment(process.env, values.command_env, request.env ?? {}),
            stdin: request.stdin ?? null,
            timeoutMs: Math.min(request.timeout_ms ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS),
            outputLimit: values.max_command_output_bytes,
            signal: AbortSignal.any([signal, this.stopping.signal]),
            started: (processes) => {
              this.groups.add(processes.group);
              this.watchdog.add(processes);
            },
            ended: (processes) => {
              this.groups.delete(processes.group);
              this.watchdog.remove(processes);
            },
          }),
        );
      } finally {
        await cwd.close();
      }
      const secrets = [...secretsOf(process.env, values.command_env), ...(values.secrets ?? [])];
      const clean = (text: string): string => withoutSecrets(text, secrets);
      return { ...result, stdout: clean(result.stdout), stderr: clean(result.stderr) };
    } catch (error) {
      throw shellError(error, request.command);
    }
  }

  onModuleDestroy(): Promise<void> {
    return this.stop();
  }

  /** Ends what is running, whose callers get the results so far; later commands end as soon as they start. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.allSettled(this.running);
    process.off('exit', this.onExit);
    this.watchdog.close();
  }

  private async track(command: Promise<CommandResult>): Promise<CommandResult> {
    this.running.add(command);
    try {
      return await command;
    } finally {
      this.running.delete(command);
    }
  }
}

/** With `args` the program itself, otherwise the shell with the command line as it stands. */
function programOf({ command, args }: ExecRequest): { file: string; args: readonly string[] } {
  if (args !== undefined && args !== null) return { file: command, args };
  if (process.platform === 'win32') return { file: process.env['ComSpec'] ?? 'cmd.exe', args: ['/d', '/s', '/c', command] };
  return { file: '/bin/sh', args: ['-c', command] };
}
