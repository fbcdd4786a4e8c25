/** Injection token of the SQLite connection. */
export const DATABASE = Symbol('harness:database');
