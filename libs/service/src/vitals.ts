/** What the service tells of a worker. Times are ms. */
export interface WorkerVitals {
  /** Writes to the store; gives how long that took. Rejects when the store cannot write. */
  write(): Promise<number>;
  readonly queue: { running: number; waiting: number; longest_wait_ms: number };
  /** What the queue needs beside the store; `ping` rejects when it is away. Null when nothing. */
  readonly dependency: { name: string; ping(): Promise<void> } | null;
  /** Turns that wait for calls. */
  parkedTurns(): number;
  freeBytes(): Promise<number>;
  configurationFaults(): readonly string[];
  /** Tells how long each durable commit took. */
  onCommit(listener: (ms: number) => void): void;
}
/** Injection token of the `WorkerVitals`. */
export const VITALS = Symbol('service:vitals');
