import type { Reading } from './fault.js';

/** How long a file may be away, or empty, before that counts as its deletion, in ms. */
export const GRACE_MS = 2_000;

const isBlank = (text: string | null): boolean => text === null || text.trim() === '';

/**
 * Tells a deletion from a save: many programs save by emptying or removing a file first. A file that had something in it
 * and has nothing now is only on its way, until it has been so for the grace time.
 */
export class Absences {
  private readonly since = new Map<string, number>();

  constructor(
    private readonly graceMs: number,
    private readonly now: () => number,
  ) {}

  /** True when a file that had `before` in it is away or empty now. */
  static isAbsent(before: string | null, reading: Reading<string | null>): boolean {
    return !isBlank(before) && reading.ok && isBlank(reading.value);
  }

  /** Ms until what is seen of a file counts; 0 when it counts already. */
  remaining(name: string, before: string | null, reading: Reading<string | null>): number {
    if (!Absences.isAbsent(before, reading)) {
      this.since.delete(name);
      return 0;
    }
    const since = this.since.get(name) ?? this.now();
    this.since.set(name, since);
    return Math.max(0, since + this.graceMs - this.now());
  }
}
