import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

interface Told {
  event: string;
  data: unknown;
}

/** A program in a process of its own, with the iii-sdk as it comes; see `program.mjs`. */
export class Program {
  readonly told: Told[] = [];
  private readonly listeners = new Set<() => void>();
  private errors = '';

  private constructor(private readonly child: ChildProcess) {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    if (child.stdout === null) throw new Error('the program has no output');
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.told.push(JSON.parse(line) as Told);
      for (const listener of this.listeners) listener();
    });
    child.on('exit', () => {
      for (const listener of this.listeners) listener();
    });
  }

  /** Starts a program and waits until all that it registers is there. It is killed after the test. */
  static async start(url: string, role: 'function' | 'hook' | 'consumer' | 'provider' | 'sibling', detail = ''): Promise<Program> {
    const argv = [join(import.meta.dirname, 'program.mjs'), url, role, detail];
    const program = new Program(spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] }));
    onTestFinished(async () => await program.kill());
    await program.until('ready');
    return program;
  }

  /** The data of the first event of that name, of those told and those to come; of the `nth` when told. */
  async until(event: string, nth = 1): Promise<unknown> {
    for (;;) {
      const found = this.told.filter((each) => each.event === event)[nth - 1];
      if (found !== undefined) return found.data;
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`the program ended without ${event}:\n${this.errors}`);
      await new Promise<void>((resolve) => {
        const listener = (): void => {
          this.listeners.delete(listener);
          resolve();
        };
        this.listeners.add(listener);
      });
    }
  }

  /** Ends the process without giving it a chance to say so. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}
