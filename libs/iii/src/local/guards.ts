import type { TriggerRegistration } from '../bus.js';

/** A binding that holds while the worker of its function is away, as it is kept. */
export interface KeptGuard {
  readonly trigger: TriggerRegistration;
  /** Name of the worker that made it. */
  readonly worker: string;
  /** True when it belongs to that worker; false when nobody owns it. */
  readonly owned: boolean;
}

/** Keeps the guards of workers in other processes beyond the life of this one. */
export interface GuardStore {
  keep(guard: KeptGuard): void;
  drop(id: string): void;
  /** True when the worker of a kept guard is connected to another process that lives: then no other stands for it. */
  isElsewhere(id: string): boolean;
}

/** How long a call of a guard waits for a worker that has just gone, or for all at the start, in ms. */
const RETURN_MS = 15_000;

/** What a caller is told of a guard that is not there. */
export const awayDetail = ({ id }: TriggerRegistration, worker: string): string =>
  `its worker ${worker} is away; until it is back nothing that this hook guards is let through. An operator can take it away with: harness-cli hooks remove ${id}`;

/** How long it still makes sense to wait for a worker that is away since then, in ms. */
export const patienceFor = (awaySince: number, now: number): number => Math.max(0, awaySince + RETURN_MS - now);
