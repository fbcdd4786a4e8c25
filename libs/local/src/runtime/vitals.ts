import { statfs } from 'node:fs/promises';
import type { Store } from './store.js';

/** Something elsewhere that a worker needs. */
export interface Dependency {
  name: string;
  /** Rejects when it does not answer as it should. */
  ping(): Promise<void>;
}

/** What a worker has beside its data folder. */
export interface Elsewhere {
  dependencies: readonly Dependency[];
  /** The queue of steps, and the turns that wait for calls, where the store of the folder does not have them. */
  queue: { readonly load: { running: number; waiting: number; longest_wait_ms: number } };
  parkedTurns?: (() => number) | undefined;
}

/** How a process and its data folder do, for those who look after it. */
export class Vitals {
  constructor(
    private readonly store: Store,
    private readonly dataDir: string,
    /** What is wrong with the configuration files now. */
    readonly configurationFaults: () => readonly string[],
    private readonly elsewhere?: Elsewhere,
  ) {}

  /** Writes to the store; gives how long it took until it was durable, in ms. Throws `harness/storage`. */
  async write(): Promise<number> {
    const startedAt = performance.now();
    await this.store.writer.submit(() => this.store.processes.renew(Date.now(), true), 'health');
    return performance.now() - startedAt;
  }

  /** Steps that run and wait in this process, and how long the longest wait is, in ms. */
  get queue(): { running: number; waiting: number; longest_wait_ms: number } {
    return (this.elsewhere?.queue ?? this.store.queue).load;
  }

  /** What has to answer beside the database. */
  get dependencies(): readonly Dependency[] {
    const { dependency } = this.store.queue;
    const others = this.elsewhere?.dependencies ?? [];
    return dependency === null ? others : [dependency, ...others];
  }

  /** Turns of the data folder that wait for calls. */
  parkedTurns(): number {
    if (this.elsewhere?.parkedTurns !== undefined) return this.elsewhere.parkedTurns();
    const { parked } = this.store.db.prepare('SELECT count(*) AS parked FROM turns WHERE expires_at IS NOT NULL').get() as {
      parked: number;
    };
    return parked;
  }

  /** Bytes that are free where the data folder is. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.dataDir);
    return bavail * bsize;
  }

  /** Tells how long each durable commit of this process took, in ms. */
  onCommit(listener: (ms: number) => void): void {
    this.store.writer.onCommit = listener;
  }
}
