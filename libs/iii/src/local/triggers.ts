import { randomUUID } from 'node:crypto';
import {
  BusError,
  type RegisterTriggerInput,
  type Registration,
  type TriggerRegistration,
  type TriggerTypeDefinition,
  type TriggerTypeHandler,
} from '../bus.js';
import type { WorkerRecord } from './workers.js';

interface TypeRecord {
  readonly definition: TriggerTypeDefinition;
  readonly handler: TriggerTypeHandler;
  readonly worker: WorkerRecord;
}

/** A bound or parked trigger. `parked` says why its type has not taken it. */
export interface TriggerRecord {
  readonly trigger: TriggerRegistration;
  /** Null when nobody owns it (bound by `engine::register_trigger`). */
  readonly worker: WorkerRecord | null;
  parked: string | null;
}

const NO_PROVIDER = 'no worker provides this trigger type';

/** Trigger types and the functions bound to them. A binding waits until its type is there and takes it. */
export class TriggerTable {
  private readonly types = new Map<string, TypeRecord>();
  private readonly triggers = new Map<string, TriggerRecord>();

  constructor(private readonly report: (message: string) => void) {}

  addType(worker: WorkerRecord, definition: TriggerTypeDefinition, handler: TriggerTypeHandler): Registration {
    if (this.types.has(definition.id)) {
      throw new BusError('TRIGGER_TYPE_CONFLICT', `trigger type ${definition.id} is already registered`, definition.id);
    }
    const type: TypeRecord = { definition, handler, worker };
    this.types.set(definition.id, type);
    for (const record of this.triggers.values()) {
      if (record.trigger.type === definition.id) void this.bind(record).catch((error: unknown) => this.report(String(error)));
    }
    return { id: definition.id, unregister: () => this.removeType(type) };
  }

  /** Binds at once where the type is there; a refusal is told to `refused`, by default reported, and the trigger stays parked. */
  add(worker: WorkerRecord | null, input: RegisterTriggerInput, refused?: (error: unknown) => void): Registration {
    const record = this.record(worker, input);
    void this.bind(record).catch(
      refused ?? ((error: unknown) => this.report(`trigger ${record.trigger.id} (${record.trigger.type}) is parked: ${String(error)}`)),
    );
    return { id: record.trigger.id, unregister: () => void this.remove(record.trigger.id) };
  }

  /** As `add`, but a refusal removes the trigger again and is thrown. */
  async addStrict(input: RegisterTriggerInput): Promise<string> {
    const record = this.record(null, input);
    try {
      await this.bind(record);
    } catch (error) {
      this.triggers.delete(record.trigger.id);
      throw error;
    }
    return record.trigger.id;
  }

  /** Removes a trigger; false when there is none of that id. */
  async remove(id: string): Promise<boolean> {
    const record = this.triggers.get(id);
    if (record === undefined) return false;
    this.triggers.delete(id);
    if (record.parked === null) await this.types.get(record.trigger.type)?.handler.unregisterTrigger(record.trigger);
    return true;
  }

  /** Everything of a worker is gone when this returns; the promise is for the providers that are told of it. */
  async removeOf(worker: WorkerRecord): Promise<void> {
    for (const type of [...this.types.values()]) if (type.worker === worker) this.removeType(type);
    const own = [...this.triggers.values()].filter((record) => record.worker === worker);
    await Promise.all(own.map((record) => this.remove(record.trigger.id)));
  }

  allTypes(): TypeRecord[] {
    return [...this.types.values()].sort((a, b) => (a.definition.id < b.definition.id ? -1 : 1));
  }

  all(): TriggerRecord[] {
    return [...this.triggers.values()];
  }

  private record(worker: WorkerRecord | null, input: RegisterTriggerInput): TriggerRecord {
    const trigger: TriggerRegistration = { ...input, id: input.id ?? randomUUID() };
    if (this.triggers.has(trigger.id)) throw new BusError('INVALID_ARGUMENTS', `trigger ${trigger.id} is already registered`);
    const record: TriggerRecord = { trigger, worker, parked: NO_PROVIDER };
    this.triggers.set(trigger.id, record);
    return record;
  }

  private bind(record: TriggerRecord): Promise<void> {
    const type = this.types.get(record.trigger.type);
    if (type === undefined) return Promise.resolve();
    const bound = (): void => {
      record.parked = null;
    };
    const refused = (error: unknown): never => {
      record.parked = error instanceof Error ? error.message : String(error);
      throw error;
    };
    try {
      const answer = type.handler.registerTrigger(record.trigger);
      if (answer instanceof Promise) return answer.then(bound, refused);
      bound();
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error))).catch(refused);
    }
  }

  private removeType(type: TypeRecord): void {
    if (this.types.get(type.definition.id) !== type) return;
    this.types.delete(type.definition.id);
    for (const record of this.triggers.values()) if (record.trigger.type === type.definition.id) record.parked = NO_PROVIDER;
  }
}
