import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

/** Gives a package by name inside an isolate. */
export type Load = (name: string) => unknown;

/** Work that was ended, or that failed, inside an isolate. */
export class IsolateError extends Error {
  override readonly name = 'IsolateError';
  constructor(
    readonly reason: 'timeout' | 'aborted' | 'failed',
    message: string,
  ) {
    super(message);
  }
}

const HEAP_MB = 256;
const base = import.meta.url;

/** Loads packages as an isolate does, for running the same work on this thread. */
export const load: Load = createRequire(base);

/**
 * Runs work on a thread of its own, so that input that somebody else chose (a pattern, a page) can neither block this
 * thread nor run for longer than it may. `make` travels as its source text: it must use its arguments only, nothing of
 * the module around it, and its inputs and outputs must be plain data.
 */
export class Isolate<TSetup, TIn, TOut> {
  private readonly worker: Worker;
  private ended: IsolateError | undefined;

  constructor(make: (load: Load, setup: TSetup) => (input: TIn) => TOut, setup: TSetup, heapMb = HEAP_MB) {
    this.worker = new Worker(sourceOf(make), {
      eval: true,
      workerData: { base, setup },
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    });
    this.worker.unref();
    this.worker.on('error', (error) => {
      this.ended ??= new IsolateError('failed', error.message);
    });
  }

  /** Runs one input; a second one may follow when the first has ended. The isolate is closed when this rejects. */
  async run(input: TIn, options: { timeoutMs: number; signal?: AbortSignal }): Promise<TOut> {
    if (this.ended !== undefined) throw this.ended;
    const { timeoutMs, signal } = options;
    try {
      return await new Promise<TOut>((resolve, reject) => {
        const end = (settle: () => void): void => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
          this.worker.off('message', onMessage).off('error', onError).off('exit', onExit);
          settle();
        };
        const fail = (reason: IsolateError['reason'], message: string): void => end(() => reject(new IsolateError(reason, message)));
        const onMessage = (answer: { output: TOut } | { error: string }): void => {
          if ('error' in answer) fail('failed', answer.error);
          else end(() => resolve(answer.output));
        };
        const onError = (error: Error): void => fail('failed', error.message);
        const onExit = (): void => fail('failed', 'the isolate ended without an answer');
        const onAbort = (): void => fail('aborted', 'the call was stopped');
        const timer = setTimeout(() => fail('timeout', `not done within ${timeoutMs} ms`), timeoutMs);
        if (signal?.aborted === true) return onAbort();
        signal?.addEventListener('abort', onAbort, { once: true });
        this.worker.on('message', onMessage).on('error', onError).on('exit', onExit);
        this.worker.postMessage(input);
      });
    } catch (error) {
      this.ended = error as IsolateError;
      await this.close();
      throw error;
    }
  }

  /** Ends the thread, also in the middle of its work. */
  async close(): Promise<void> {
    this.ended ??= new IsolateError('aborted', 'the isolate is closed');
    await this.worker.terminate();
  }
}

const sourceOf = (make: (...args: never[]) => unknown): string => `
const { parentPort, workerData } = require('node:worker_threads');
const load = require('node:module').createRequire(workerData.base);
let work;
parentPort.on('message', (input) => {
  try {
    work ??= (${make.toString()})(load, workerData.setup);
    parentPort.postMessage({ output: work(input) });
  } catch (error) {
    parentPort.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
});
`;
