import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  BusError,
  type RegisterTriggerInput,
  type Registration,
  type TriggerRegistration,
  type TriggerTypeDefinition,
  type TriggerTypeHandler,
} from '../bus.js';
import type { GuardStore, KeptGuard } from './guards.js';
import type { WorkerRecord } from './workers.js';

interface TypeRecord {
  readonly definition: TriggerTypeDefinition;
  readonly handler: TriggerTypeHandler;
  readonly worker: WorkerRecord;
}

/** A bound or parked trigger. `parked` says why its type has not taken it. */
export interface TriggerRecord {
  readonly trigger: TriggerRegistration;
  /** Null when nobody owns it: bound by `engine::register_trigger`, or a guard whose worker is away. */
  worker: WorkerRecord | null;
  parked: string | null;
  /** Set for a binding of a worker in another process that outlasts its connection. */
  guard: Guard | null;
}

/** What makes a binding a guard. `away_since` is when its function went away, in ms; null while that is there. */
interface Guard {
  worker: string;
  readonly owned: boolean;
  away_since: number | null;
}

const NO_PROVIDER = 'no worker provides this trigger type';
/** How long after a guard is back what its function was bound with before still holds, in ms: it may not have said all yet. */
const SETTLE_MS = 10_000;

/** Trigger types and the functions bound to them. A binding waits until its type is there and takes it. */
export class TriggerTable {
  private readonly types = new Map<string, TypeRecord>();
  private readonly triggers = new Map<string, TriggerRecord>();
  private store: GuardStore | undefined;

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

  /** Keeps guards from now on; those that are kept already come by `restore`. */
  keepGuards(store: GuardStore): void {
    this.store = store;
  }

  /** Binds at once where the type is there; a refusal is told to `refused`, by default reported, and the trigger stays parked. */
  add(worker: WorkerRecord | null, input: RegisterTriggerInput, refused?: (error: unknown) => void): Registration {
    const record = this.record(worker, input);
    this.bind(record).then(
      () => this.guardIfOne(record, worker),
      refused ?? ((error: unknown) => this.report(`trigger ${record.trigger.id} (${record.trigger.type}) is parked: ${String(error)}`)),
    );
    return {
      id: record.trigger.id,
      unregister: () => {
        if (this.triggers.get(record.trigger.id) === record) void this.remove(record.trigger.id);
      },
    };
  }

  /** As `add`, but owned by nobody, and a refusal removes the trigger again and is thrown. `by` is who asked for it. */
  async addStrict(input: RegisterTriggerInput, by?: WorkerRecord): Promise<string> {
    const record = this.record(null, input);
    try {
      await this.bind(record);
    } catch (error) {
      this.triggers.delete(record.trigger.id);
      throw error;
    }
    this.guardIfOne(record, by ?? null, false);
    return record.trigger.id;
  }

  /** The worker that has bound a trigger; null when nobody owns it, or there is none of that id. */
  ownerOf(id: string): WorkerRecord | null {
    return this.triggers.get(id)?.worker ?? null;
  }

  /** Removes a trigger; false when there is none of that id. */
  async remove(id: string): Promise<boolean> {
    const record = this.triggers.get(id);
    if (record === undefined) return false;
    if (record.guard !== null) this.store?.drop(id);
    await this.unbind(record);
    return true;
  }

  /**
   * Takes back what a worker has registered; of one that was `lost` the guards stay. `provides` says which functions are its
   * own. All of it is done when this returns; the promise is for the providers that are told of it.
   */
  async removeOf(worker: WorkerRecord, how: 'left' | 'lost', provides: (functionId: string) => boolean): Promise<void> {
    for (const type of [...this.types.values()]) if (type.worker === worker) this.removeType(type);
    const gone: TriggerRecord[] = [];
    for (const record of [...this.triggers.values()]) {
      if (record.guard !== null && how === 'lost') this.leaveBehind(record, worker, provides);
      else if (record.worker === worker) gone.push(record);
    }
    await Promise.all(gone.map((record) => this.remove(record.trigger.id)));
  }

  /** Makes the guards that are kept the guards that are there: new ones are away, those that are kept no more go. */
  restore(kept: readonly KeptGuard[], now: number): void {
    const ids = new Set(kept.map(({ trigger }) => trigger.id));
    for (const record of [...this.triggers.values()]) {
      if (record.guard === null || ids.has(record.trigger.id)) continue;
      void this.unbind(record).catch((error: unknown) => this.report(String(error)));
    }
    for (const { trigger, ...guard } of kept) {
      if (this.triggers.has(trigger.id)) continue;
      const record: TriggerRecord = { trigger, worker: null, parked: NO_PROVIDER, guard: { ...guard, away_since: now } };
      this.triggers.set(trigger.id, record);
      this.bind(record).catch((error: unknown) => this.report(`the guard ${trigger.id} is not in force: ${String(error)}`));
    }
  }

  /** Notes the name of a worker, which it may say only after it has made its bindings. */
  workerIsNamed(worker: WorkerRecord): void {
    for (const { trigger, guard, worker: owner } of this.triggers.values()) {
      if (guard === null || owner !== worker || guard.worker === worker.name) continue;
      guard.worker = worker.name;
      this.store?.keep({ trigger, worker: worker.name, owned: guard.owned });
    }
  }

  /** The guard of which `functionId` is the function, if there is one. */
  guardOf(functionId: string): TriggerRecord | undefined {
    for (const record of this.triggers.values()) if (record.guard !== null && record.trigger.function_id === functionId) return record;
    return undefined;
  }

  /** Notes that the function of guards is there again. */
  functionIsBack(functionId: string): void {
    for (const { trigger, guard } of this.triggers.values())
      if (guard !== null && trigger.function_id === functionId) guard.away_since = null;
  }

  allTypes(): TypeRecord[] {
    return [...this.types.values()].sort((a, b) => (a.definition.id < b.definition.id ? -1 : 1));
  }

  all(): TriggerRecord[] {
    return [...this.triggers.values()];
  }

  private record(worker: WorkerRecord | null, input: RegisterTriggerInput): TriggerRecord {
    const trigger: TriggerRegistration = { ...input, id: input.id ?? randomUUID() };
    const before = this.triggers.get(trigger.id);
    if (before !== undefined && !isLeftBehind(before))
      throw new BusError('INVALID_ARGUMENTS', `trigger ${trigger.id} is already registered`);
    if (before !== undefined) void this.unbind(before).catch((error: unknown) => this.report(String(error)));
    const record: TriggerRecord = { trigger, worker, parked: NO_PROVIDER, guard: null };
    this.triggers.set(trigger.id, record);
    return record;
  }

  /** A binding of a worker in another process that its type takes for a guard is kept, and stands for those like it from before. */
  private guardIfOne(record: TriggerRecord, by: WorkerRecord | null, owned = true): void {
    const { trigger } = record;
    if (this.triggers.get(trigger.id) !== record || by?.remote !== true || record.parked !== null) return;
    if (this.types.get(trigger.type)?.handler.isGuard?.(trigger) !== true) return;
    const kept = { worker: by.name, owned };
    record.guard = { ...kept, away_since: null };
    this.store?.keep({ trigger, ...kept });
    this.replaceLike(record, (other) => isSameBinding(other, trigger));
    setTimeout(() => {
      if (this.triggers.get(trigger.id) === record && !isLeftBehind(record)) this.replaceLike(record, () => true);
    }, SETTLE_MS).unref();
  }

  /** Removes what was left behind for the same function at the same type. */
  private replaceLike({ trigger }: TriggerRecord, isLike: (other: TriggerRegistration) => boolean): void {
    for (const other of [...this.triggers.values()]) {
      if (!isLeftBehind(other) || other.trigger.type !== trigger.type || other.trigger.function_id !== trigger.function_id) continue;
      if (isLike(other.trigger) && this.store?.isElsewhere(other.trigger.id) !== true)
        void this.remove(other.trigger.id).catch((error: unknown) => this.report(String(error)));
    }
  }

  private leaveBehind(record: TriggerRecord, worker: WorkerRecord, provides: (functionId: string) => boolean): void {
    const { guard, trigger } = record;
    if (record.worker === worker) record.worker = null;
    if (guard !== null && provides(trigger.function_id)) guard.away_since = Date.now();
  }

  private async unbind(record: TriggerRecord): Promise<void> {
    this.triggers.delete(record.trigger.id);
    if (record.parked === null) await this.types.get(record.trigger.type)?.handler.unregisterTrigger(record.trigger);
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

/** True for a guard whose worker, which owns it, is away. */
const isLeftBehind = ({ guard, worker }: TriggerRecord): boolean => guard?.owned === true && worker === null;

const isSameBinding = (a: TriggerRegistration, b: TriggerRegistration): boolean =>
  isDeepStrictEqual([a.config, a.metadata], [b.config, b.metadata]);
