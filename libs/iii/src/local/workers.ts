import { hostname } from 'node:os';

/** A worker connected to a local engine. */
export interface WorkerRecord {
  readonly id: string;
  readonly name: string;
  readonly runtime: string;
  readonly version: string;
  readonly connected_at: number;
}

/** The default name of a worker: host and process. */
export const defaultWorkerName = (): string => `${hostname()}:${process.pid}`;

/** The connected workers of a local engine. */
export class WorkerTable {
  private readonly byId = new Map<string, WorkerRecord>();

  add(record: WorkerRecord): void {
    this.byId.set(record.id, record);
  }

  remove(record: WorkerRecord): void {
    this.byId.delete(record.id);
  }

  all(): WorkerRecord[] {
    return [...this.byId.values()];
  }
}
