import { seeded } from '../crash/random.js';

/** Random choices that are the same for the same seed. */
export class Chance {
  private readonly next: () => number;

  constructor(readonly seed: number) {
    this.next = seeded(Math.imul(seed + 1, 0x9e3779b1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `from` to `to`, both included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  pick<T>(options: readonly T[]): T {
    const picked = options[Math.floor(this.next() * options.length)];
    if (picked === undefined && options.length === 0) throw new Error('there is nothing to pick from');
    return picked as T;
  }

  /** Some of the options, in their order. */
  some<T>(options: readonly T[], probability = 0.4): T[] {
    return options.filter(() => this.chance(probability));
  }

  list<T>(from: number, to: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.int(from, to) }, (_, index) => make(index));
  }

  /** One of the makers, by weight. */
  weighted<T>(makers: readonly (readonly [weight: number, make: () => T])[]): T {
    let left = this.next() * makers.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of makers) {
      left -= weight;
      if (left < 0) return make();
    }
    throw new Error('no maker was chosen');
  }
}
