/** Injection token of the worker's `Vitals`. */
export const VITALS = Symbol('service:vitals');
