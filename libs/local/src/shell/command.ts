import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '../confine/index.js';
import { OutputBuffer } from './output.js';
import { isGroupRunning, signalGroup } from './process-group.js';

export interface CommandOptions {
  file: string;
  args: readonly string[];
  cwd: string;
  env: { [name: string]: string };
  stdin: string | null;
  timeoutMs: number;
  outputLimit: number;
  signal: AbortSignal;
  /** Told of the process group while it lives. */
  started: (group: number) => void;
  ended: (group: number) => void;
}
export interface CommandResult {
  stdout: string;
  stderr: string;
  /** Null when a signal ended the command. */
  exit_code: number | null;
  signal?: string;
  timed_out: boolean;
  duration_ms: number;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
}

/** Time between TERM and KILL. */
export const GRACE_MS = 500;
/** How long output may still arrive after the last process of the group is gone. */
const DRAIN_MS = 250;
const POLL_MS = 25;
/** A command that writes more than this many times what is kept is ended. */
const FLOOD = 64;

/** Runs one command in a process group of its own; when this resolves, nothing of the group runs any more. */
export async function runCommand(options: CommandOptions): Promise<CommandResult> {
  const began = performance.now();
  const child = spawn(options.file, options.args, {
    cwd: options.cwd,
    env: options.env,
    detached: process.platform !== 'win32',
    stdio: [options.stdin === null ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    windowsHide: true,
  });
  return new Command(child, options, began).result();
}

class Command {
  private readonly stdout: OutputBuffer;
  private readonly stderr: OutputBuffer;
  private timedOut = false;
  private flooded = false;
  private killTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly child: ChildProcess,
    private readonly options: CommandOptions,
    private readonly began: number,
  ) {
    this.stdout = new OutputBuffer(options.outputLimit);
    this.stderr = new OutputBuffer(options.outputLimit);
  }

  async result(): Promise<CommandResult> {
    const { child, options } = this;
    const exited = this.exit();
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const group = child.pid;
    if (group !== undefined) options.started(group);
    this.collect();
    this.feed();
    const timer = setTimeout(() => {
      this.timedOut = true;
      this.end();
    }, options.timeoutMs);
    const onAbort = (): void => this.end();
    options.signal.addEventListener('abort', onAbort, { once: true });
    if (options.signal.aborted) onAbort();
    try {
      const { code, signal } = await exited;
      clearTimeout(timer);
      // What the command left behind in its group ends with it.
      if (group !== undefined) await this.reap(group);
      if (!(await within(closed, DRAIN_MS))) {
        // A process that left the group holds the pipe; what it writes is nobody's output any more.
        child.stdout?.destroy();
        child.stderr?.destroy();
      }
      return this.report(code, signal);
    } finally {
      clearTimeout(timer);
      clearTimeout(this.killTimer);
      options.signal.removeEventListener('abort', onAbort);
      if (group !== undefined) options.ended(group);
    }
  }

  private exit(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (code, signal) => resolve({ code, signal }));
    });
  }

  private collect(): void {
    const listen = (stream: NodeJS.ReadableStream | null, buffer: OutputBuffer): void => {
      stream?.on('data', (chunk: Buffer) => {
        buffer.push(chunk);
        if (buffer.total > FLOOD * this.options.outputLimit && !this.flooded) {
          this.flooded = true;
          this.end();
        }
      });
    };
    listen(this.child.stdout, this.stdout);
    listen(this.child.stderr, this.stderr);
  }

  private feed(): void {
    const { stdin } = this.child;
    if (stdin === null) return;
    // A command may end without reading its input; that is its own affair.
    stdin.on('error', (error) => {
      if (errnoOf(error) !== 'EPIPE' && errnoOf(error) !== 'ECONNRESET') this.stderr.push(Buffer.from(`\n[stdin: ${error.message}]\n`));
    });
    stdin.end(this.options.stdin ?? '');
  }

  /** Asks the whole group to end, and makes it end after the grace time. */
  private end(): void {
    const group = this.child.pid;
    if (group === undefined || this.killTimer !== undefined) return;
    signalGroup(group, 'SIGTERM');
    this.killTimer = setTimeout(() => signalGroup(group, 'SIGKILL'), GRACE_MS);
  }

  /** Ends what is left of the group: asks first, and insists after the grace time. */
  private async reap(group: number): Promise<void> {
    if (!signalGroup(group, 'SIGTERM')) return;
    const until = performance.now() + GRACE_MS;
    do {
      await pause(POLL_MS);
      if (!(await isGroupRunning(group))) return;
    } while (performance.now() < until);
    signalGroup(group, 'SIGKILL');
  }

  private report(code: number | null, signal: NodeJS.Signals | null): CommandResult {
    const flood = this.flooded ? `\n[the command was ended: it wrote more than ${FLOOD * this.options.outputLimit} bytes]\n` : '';
    return {
      stdout: this.stdout.text(),
      stderr: this.stderr.text() + flood,
      exit_code: code,
      ...(signal === null ? {} : { signal }),
      timed_out: this.timedOut,
      duration_ms: Math.round(performance.now() - this.began),
      stdout_truncated: this.stdout.truncated,
      stderr_truncated: this.stderr.truncated,
    };
  }
}

/** True when `promise` settles within `ms`. */
async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true as const), late]);
  } finally {
    clearTimeout(timer);
  }
}
