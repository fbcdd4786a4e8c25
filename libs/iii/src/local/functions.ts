import type { JsonValue } from '#libs/contracts';
import { BusError, type FunctionDefinition, type FunctionHandler, type Registration } from '../bus.js';
import type { WorkerRecord } from './workers.js';

/** A registered function with the worker that owns it. */
export interface FunctionRecord {
  readonly definition: FunctionDefinition;
  readonly handler: FunctionHandler;
  readonly worker: WorkerRecord;
}

/** The functions of a local engine, by id. One live owner per id. */
export class FunctionTable {
  private readonly byId = new Map<string, FunctionRecord>();
  private readonly listeners = new Set<() => void>();

  add(worker: WorkerRecord, definition: FunctionDefinition, handler: FunctionHandler): Registration {
    const { id } = definition;
    if (!/^[^\s]+$/.test(id))
      throw new BusError('INVALID_ARGUMENTS', `a function id may not be empty or hold spaces: ${JSON.stringify(id)}`);
    if (this.byId.has(id)) {
      throw new BusError(
        'FUNCTION_NAMESPACE_CONFLICT',
        `function ${id} is already registered by worker ${this.byId.get(id)?.worker.name ?? '?'}`,
        id,
      );
    }
    const record: FunctionRecord = { definition, handler, worker };
    this.byId.set(id, record);
    this.changed();
    return {
      id,
      unregister: () => {
        if (this.byId.get(id) !== record) return;
        this.byId.delete(id);
        this.changed();
      },
    };
  }

  get(id: string): FunctionRecord | undefined {
    return this.byId.get(id);
  }

  /** All functions, ordered by id, so that lists are stable whatever the order of registration. */
  all(): FunctionRecord[] {
    return [...this.byId.values()].sort((a, b) => (a.definition.id < b.definition.id ? -1 : 1));
  }

  /** The function of that id as soon as it is there; undefined when it does not come in time or the signal is given. */
  async appearance(id: string, ms: number, signal?: AbortSignal): Promise<FunctionRecord | undefined> {
    let stop = (): void => undefined;
    const timer = setTimeout(() => stop(), ms);
    const over = new Promise<void>((resolve) => {
      stop = resolve;
    });
    const unlisten = this.onChange(() => {
      if (this.byId.has(id)) stop();
    });
    signal?.addEventListener('abort', stop, { once: true });
    await over;
    clearTimeout(timer);
    unlisten();
    signal?.removeEventListener('abort', stop);
    return this.byId.get(id);
  }

  removeOf(worker: WorkerRecord): void {
    for (const [id, record] of this.byId) if (record.worker === worker) this.byId.delete(id);
    this.changed();
  }

  /** Calls `listener` after each change; returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

/** True when a function is left out of the default list. */
export const isInternal = (metadata: { readonly [key: string]: JsonValue } | undefined): boolean => metadata?.['internal'] === true;
