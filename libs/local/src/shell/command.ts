import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '../confine/index.js';
import { CALL_VARIABLE, CommandProcesses, signalGroup } from './command-processes.js';
import { OutputBuffer } from './output.js';

export interface CommandOptions {
  file: string;
  args: readonly string[];
  cwd: string;
  env: { [name: string]: string };
  stdin: string | null;
  timeoutMs: number;
  outputLimit: number;
  signal: AbortSignal;
  /** Told of the processes while they live. */
  started: (processes: CommandProcesses) => void;
  ended: (processes: CommandProcesses) => void;
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
/** How long it is tried to end what is left of a command. */
const INSIST_MS = 5_000;
/** How long output may still arrive after the last process of a command is gone. */
const DRAIN_MS = 250;
const POLL_MS = 25;
/** A command that writes more than this many times what is kept is ended. */
const FLOOD = 64;

/** Runs one command in a process group of its own; when this resolves, nothing that it started and that can be found runs any more. */
export async function runCommand(options: CommandOptions): Promise<CommandResult> {
  const began = performance.now();
  const mark = randomBytes(12).toString('hex');
  // A harness that runs in a command of another one is among the processes of both.
  const calls = [process.env[CALL_VARIABLE], mark].filter((one) => one !== undefined).join(':');
  const child = spawn(options.file, options.args, {
    cwd: options.cwd,
    env: { ...options.env, [CALL_VARIABLE]: calls },
    detached: process.platform !== 'win32',
    stdio: [options.stdin === null ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    windowsHide: true,
  });
  return new Command(child, options, began, mark).result();
}

class Command {
  private readonly stdout: OutputBuffer;
  private readonly stderr: OutputBuffer;
  private timedOut = false;
  private flooded = false;
  private killTimer: NodeJS.Timeout | undefined;
  private readonly processes: CommandProcesses | null;

  constructor(
    private readonly child: ChildProcess,
    private readonly options: CommandOptions,
    private readonly began: number,
    mark: string,
  ) {
    this.processes = child.pid === undefined ? null : new CommandProcesses(child.pid, mark);
    this.stdout = new OutputBuffer(options.outputLimit);
    this.stderr = new OutputBuffer(options.outputLimit);
  }

  async result(): Promise<CommandResult> {
    const { child, options, processes } = this;
    const exited = this.exit();
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    if (processes !== null) options.started(processes);
    let ending: Promise<void> = Promise.resolve();
    const onAbort = (): void => {
      ending = this.end();
    };
    this.collect(onAbort);
    this.feed();
    const timer = setTimeout(() => {
      this.timedOut = true;
      onAbort();
    }, options.timeoutMs);
    options.signal.addEventListener('abort', onAbort, { once: true });
    if (options.signal.aborted) onAbort();
    try {
      const { code, signal } = await exited;
      clearTimeout(timer);
      // What the command left behind ends with it.
      await ending;
      if (processes !== null) await reap(processes);
      if (!(await within(closed, DRAIN_MS))) {
        // A process that could not be found holds the pipe; what it writes is nobody's output any more.
        child.stdout?.destroy();
        child.stderr?.destroy();
      }
      return this.report(code, signal);
    } finally {
      clearTimeout(timer);
      clearTimeout(this.killTimer);
      options.signal.removeEventListener('abort', onAbort);
      if (processes !== null) options.ended(processes);
    }
  }

  private exit(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (code, signal) => resolve({ code, signal }));
    });
  }

  private collect(tooMuch: () => void): void {
    const listen = (stream: NodeJS.ReadableStream | null, buffer: OutputBuffer): void => {
      stream?.on('data', (chunk: Buffer) => {
        buffer.push(chunk);
        if (buffer.total > FLOOD * this.options.outputLimit && !this.flooded) {
          this.flooded = true;
          tooMuch();
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

  /** Asks all to end, and makes the group end after the grace time; what is left then is reaped. */
  private async end(): Promise<void> {
    const { processes } = this;
    if (processes === null || this.killTimer !== undefined) return;
    this.killTimer = setTimeout(() => signalGroup(processes.group, 'SIGKILL'), GRACE_MS);
    await processes.signal('SIGTERM');
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

/** Ends what is left of a command: asks first, and insists after the grace time, as long as there is anything new. */
async function reap(processes: CommandProcesses): Promise<void> {
  const began = performance.now();
  while (await processes.signal(performance.now() - began < GRACE_MS ? 'SIGTERM' : 'SIGKILL')) {
    if (performance.now() - began > INSIST_MS) return;
    await pause(POLL_MS);
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
