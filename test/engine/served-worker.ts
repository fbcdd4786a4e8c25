import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, import.meta.dirname.includes(join('dist', 'test')) ? '../../..' : '../..');
const CLI = join(ROOT, 'dist/apps/harness-cli/src/main.js');

/** `harness-cli serve` as a process of its own, which can be killed and started again. */
export class ServedWorker {
  /** All that it has said, over all its lives. */
  said = '';
  private child: ChildProcess | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly dataDir: string,
    private readonly env: { [name: string]: string },
  ) {}

  /** Starts it; resolves when it is ready. Rejects with what it said when it ends before. */
  async up(): Promise<void> {
    this.begin();
    await this.until(/"msg":"ready"/);
  }

  /** Starts it, and does not wait. */
  begin(): void {
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.dataDir, ...this.env };
    const child = spawn(process.execPath, [CLI, 'serve', '--data-dir', this.dataDir], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.said += text;
        this.tell();
      });
    }
    child.on('close', () => this.tell());
    this.child = child;
  }

  /** Resolves once it has said `pattern` in this life. */
  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.said)) {
      if (this.hasEnded) throw new Error(`the worker ended without ${String(pattern)}:\n${this.said}`);
      await new Promise<void>((done) => {
        const listener = (): void => {
          this.listeners.delete(listener);
          done();
        };
        this.listeners.add(listener);
      });
    }
  }

  get hasEnded(): boolean {
    return this.child === undefined || this.child.exitCode !== null || this.child.signalCode !== null;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Sends a signal and waits for the end; gives the exit code. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = this;
    if (child === undefined || this.hasEnded) return child?.exitCode ?? null;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
    return child.exitCode;
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
