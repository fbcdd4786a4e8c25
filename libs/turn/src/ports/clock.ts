/** Time and ids, so that tests can hold them. */
export interface Clock {
  /** Ms since the epoch. */
  now(): number;
}
export const systemClock: Clock = { now: () => Date.now() };
/** Injection token of the `Clock`. */
export const CLOCK = Symbol('harness:clock');
