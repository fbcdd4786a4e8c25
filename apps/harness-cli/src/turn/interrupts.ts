import type { CliIo, Signal } from '../cli/cli.js';

const SIGNALS: readonly Signal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Takes the signals of the process while it is open, and counts them: `handler` gets each with its number, from 1. */
export class Interrupts {
  private times = 0;
  private readonly handlers: [Signal, () => void][];

  constructor(
    private readonly signals: CliIo['signals'],
    handler: (signal: Signal, times: number) => void,
  ) {
    this.handlers = SIGNALS.map((signal) => [
      signal,
      () => {
        this.times += 1;
        handler(signal, this.times);
      },
    ]);
    for (const [signal, listener] of this.handlers) signals.on(signal, listener);
  }

  /** Gives the signals back. */
  close(): void {
    for (const [signal, listener] of this.handlers) this.signals.off(signal, listener);
  }
}
