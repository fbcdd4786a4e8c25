import { describe, expect, it } from 'vitest';
import { Isolate, IsolateError } from './isolate.js';
import { longestBlock } from './test/app.js';

const spin =
  () =>
  (input: string): number => {
    for (;;) if (input === 'end') return 1;
  };

describe('Isolate', () => {
  it('runs inputs one after the other with what it set up', async () => {
    const isolate = new Isolate((_load, setup: { factor: number }) => (input: number) => input * setup.factor, { factor: 3 });
    expect(await isolate.run(2, { timeoutMs: 5_000 })).toBe(6);
    expect(await isolate.run(5, { timeoutMs: 5_000 })).toBe(15);
    await isolate.close();
    await expect(isolate.run(1, { timeoutMs: 5_000 })).rejects.toThrow('closed');
  });

  it('ends work that does not end, and does not block this thread', async () => {
    const isolate = new Isolate(spin, null);
    const blocked = await longestBlock(async () => {
      await expect(isolate.run('never', { timeoutMs: 200 })).rejects.toMatchObject({ reason: 'timeout' });
    });
    expect(blocked).toBeLessThan(150);
  });

  it('ends when the caller gives up', async () => {
    const controller = new AbortController();
    const isolate = new Isolate(spin, null);
    const running = isolate.run('never', { timeoutMs: 10_000, signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    await expect(running).rejects.toMatchObject({ reason: 'aborted' });
  });

  it('reports what the work throws, and survives memory that it eats', async () => {
    const thrower = new Isolate(
      () => (): number => {
        throw new Error('no good');
      },
      null,
    );
    await expect(thrower.run(1 as never, { timeoutMs: 5_000 })).rejects.toThrow('no good');
    const eater = new Isolate(
      () => (): number => {
        const held: unknown[] = [];
        for (;;) held.push(new Array(100_000).fill({}).map(() => ({})));
      },
      null,
      24,
    );
    await expect(eater.run(1 as never, { timeoutMs: 15_000 })).rejects.toBeInstanceOf(IsolateError);
  });
});
