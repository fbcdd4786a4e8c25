import { describe, expect, it } from 'vitest';
import { TookTooLong, withinTime } from './bounded.js';
import { contractFault } from './contract.js';

/** Waits as a process does that others keep from running: time passes, and it uses none. */
const starve = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('withinTime', () => {
  it('ends work that goes on', () => {
    const endless = (): never => {
      for (;;);
    };
    expect(() => withinTime(30, endless)).toThrow(TookTooLong);
  });

  it('passes on what the work gives or throws', () => {
    expect(withinTime(1_000, () => 7)).toBe(7);
    expect(() =>
      withinTime(1_000, () => {
        throw new RangeError('of the work');
      }),
    ).toThrow('of the work');
  });

  it('gives work more time while other processes have the machine: only what it uses itself counts', () => {
    expect(
      withinTime(50, () => {
        starve(200);
        return 'done';
      }),
    ).toBe('done');
  });

  it('takes a schema although its first compilation was cut off in the middle', () => {
    let reads = 0;
    const properties = {
      get answer() {
        reads += 1;
        if (reads === 3) starve(1_000); // the first reads are not part of what is timed
        return { type: 'integer' };
      },
    };
    expect(contractFault({ type: 'json', schema: { type: 'object', properties, title: 'cut off' } })).toBeNull();
    expect(reads).toBeGreaterThan(3);
  });
});
