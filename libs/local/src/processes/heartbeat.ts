import { errorMessage } from '#libs/contracts';
import type { SqliteWriter } from '../sqlite/index.js';
import type { ProcessRegistry } from './registry.js';

/** Renews the lease of this process while it has work that it must not lose. */
export class Heartbeat {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly writer: SqliteWriter,
    private readonly processes: ProcessRegistry,
    private readonly report: (message: string, context: { [key: string]: unknown }) => void,
  ) {}

  /** Beats from now on while there is work, and not without. */
  set busy(isBusy: boolean) {
    if (!isBusy) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    this.timer ??= setInterval(() => {
      const renewed = this.writer.submit(() => this.processes.renew(Date.now()), 'heartbeat');
      renewed.catch((error: unknown) => this.report('the lease could not be renewed', { error: errorMessage(error) }));
    }, this.processes.heartbeatMs);
  }
}
