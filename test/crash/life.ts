import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { WorkerLine, WorkerPlan } from './protocol.js';

/** How a life of a worker ended. */
export interface Death {
  signal: NodeJS.Signals | null;
  code: number | null;
}

const BOOT = join(import.meta.dirname, 'boot.cjs');
/** Garbage is collected seldom and nothing is optimised: a life is short. */
const FLAGS = ['--min-semi-space-size=64', '--initial-heap-size=512', '--single-threaded-gc', '--no-opt', '--no-flush-bytecode'];
/** A life that lasts longer than this hangs. */
const PATIENCE_MS = 60_000;

/** One life of a worker process; `bundleWorker` has to come first. */
export class Life {
  static readonly bundle = join(import.meta.dirname, 'bundle', 'worker.cjs');

  readonly lines: WorkerLine[] = [];
  readonly ended: Promise<Death>;
  readonly startedAt = performance.now();
  stderr = '';
  /** True when the process had to be killed because it did nothing any more. */
  hung = false;
  private readonly child: ChildProcess;
  private readonly listeners = new Set<(line: WorkerLine) => void>();

  /** `failpoint` is where it dies; `keep`: its compiled code is kept for the lives to come. */
  constructor(plan: WorkerPlan, { failpoint = '', keep = false }: { failpoint?: string; keep?: boolean } = {}) {
    const env = { ...process.env, HARNESS_FAILPOINT: failpoint };
    const args = [...FLAGS, BOOT, Life.bundle, keep ? 'keep' : 'use', JSON.stringify(plan)];
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as WorkerLine;
      this.lines.push(line);
      for (const listener of this.listeners) listener(line);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    const limit = setTimeout(() => {
      this.hung = true;
      child.kill('SIGKILL');
    }, PATIENCE_MS);
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, signal) => {
        clearTimeout(limit);
        resolve({ code, signal });
      });
    });
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  /** Waits until this many lines have come after the first of a type, or the process has ended. */
  async linesAfter(type: WorkerLine['type'], count: number): Promise<void> {
    const isThere = (): boolean => {
      const first = this.lines.findIndex((line) => line.type === type);
      return first >= 0 && this.lines.length > first + count;
    };
    if (isThere()) return;
    const told = new Promise<void>((resolve) => {
      this.listeners.add(() => {
        if (isThere()) resolve();
      });
    });
    await Promise.race([told, this.ended]);
  }

  /** Waits for a line; rejects when the process ends without it. */
  async line<T extends WorkerLine['type']>(type: T): Promise<Extract<WorkerLine, { type: T }>> {
    const isIt = (line: WorkerLine): line is Extract<WorkerLine, { type: T }> => line.type === type;
    const found = this.lines.find(isIt);
    if (found !== undefined) return found;
    const told = new Promise<Extract<WorkerLine, { type: T }>>((resolve) => {
      this.listeners.add((line) => {
        if (isIt(line)) resolve(line);
      });
    });
    const gone = this.ended.then(() => {
      throw new Error(`the worker ended without "${type}": ${this.stderr.slice(-500)}`);
    });
    gone.catch(() => undefined); // the line may have come first
    return await Promise.race([told, gone]);
  }
}
