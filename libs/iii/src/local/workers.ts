import { hostname } from 'node:os';

/** A worker connected to a local engine. What it says of itself can change while it is connected. */
export interface WorkerRecord {
  readonly id: string;
  name: string;
  runtime: string;
  version: string;
  description?: string;
  os?: string;
  pid?: number;
  isolation?: string;
  /** True for a worker in another process. */
  readonly remote: boolean;
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

  /** The worker of that id, if it is in another process. */
  remote(id: string | undefined): WorkerRecord | undefined {
    const worker = id === undefined ? undefined : this.byId.get(id);
    return worker?.remote === true ? worker : undefined;
  }

  all(): WorkerRecord[] {
    return [...this.byId.values()];
  }
}
