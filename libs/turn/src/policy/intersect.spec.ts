import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { narrow } from '../spawn/prepare.js';
import { compileGlob, globFault } from './glob.js';
import { IntersectionTooLarge, intersectGlobs } from './intersect.js';
import { compilePolicy } from './policy.js';

/** Few letters, so that random globs and ids meet often. */
const pieces = fc.constantFrom('a', 'b', '::', 'a::', '-', '*', '*');
const glob = fc.array(pieces, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('').replaceAll(/\*+/g, '*'));
const globs = fc.array(glob, { maxLength: 4 });
const id = fc.array(fc.constantFrom('a', 'b', '::', 'a::', '-', 'ab'), { maxLength: 7 }).map((parts) => parts.join(''));
const matchesAny = (sources: readonly string[], text: string): boolean => sources.some((source) => compileGlob(source).matches(text));
/** An id that a glob matches, with something for each star. */
const filled = (source: string, fill: readonly string[]): string => {
  let next = 0;
  return source.replaceAll('*', () => fill[next++ % Math.max(1, fill.length)] ?? '');
};
/** The intersection; a random one that is too large to be made tells nothing. */
const intersected = (a: readonly string[], b: readonly string[]): string[] => {
  try {
    return intersectGlobs(a, b);
  } catch (error) {
    fc.pre(!(error instanceof IntersectionTooLarge));
    throw error;
  }
};
/** A glob matched letter by letter, as its words say it. */
function naive(source: string, text: string): boolean {
  if (source === '') return text === '';
  if (source[0] === '*') return naive(source.slice(1), text) || (text !== '' && naive(source, text.slice(1)));
  return text !== '' && source[0] === text[0] && naive(source.slice(1), text.slice(1));
}

describe('globs', () => {
  it('match what their words say', () => {
    fc.assert(
      fc.property(glob, id, (source, text) => compileGlob(source).matches(text) === naive(source, text)),
      { numRuns: 5_000 },
    );
  });

  it('match what they are filled with', () => {
    fc.assert(
      fc.property(glob, fc.array(id, { maxLength: 4 }), (source, fill) => compileGlob(source).matches(filled(source, fill))),
      { numRuns: 2_000 },
    );
  });
});

describe('the intersection of two lists of globs', () => {
  it('matches an id exactly when both match it', () => {
    fc.assert(
      fc.property(globs, globs, id, fc.array(id, { minLength: 1, maxLength: 4 }), (a, b, text, fill) => {
        const both = intersected(a, b);
        // Random ids, and ids made from each of the globs, so that matches are not rare.
        for (const one of [text, ...[...a, ...b, ...both].map((source) => filled(source, fill))]) {
          expect([one, matchesAny(both, one)]).toEqual([one, matchesAny(a, one) && matchesAny(b, one)]);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  it('does not depend on the order, is not wider when made again, and holds only globs that a policy takes', () => {
    fc.assert(
      fc.property(globs, globs, id, (a, b, text) => {
        const both = intersected(a, b);
        expect(matchesAny(intersected(b, a), text)).toBe(matchesAny(both, text));
        expect(matchesAny(intersected(both, both), text)).toBe(matchesAny(both, text));
        for (const source of both) expect([source, globFault(source)]).toEqual([source, null]);
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    [['*'], ['math::add'], ['math::add']],
    [['math::*'], ['*::add'], ['math::*::add', 'math:::add', 'math::add']],
    [['a*'], ['*a'], ['a', 'a*a']],
    [['math::*'], ['files::*'], []],
    [[], ['*'], []],
    [['math::*', 'math::add'], ['*'], ['math::*']],
    [['*'], ['*'], ['*']],
  ])('of %j and %j is %j', (a, b, both) => {
    expect([...intersectGlobs(a, b)].sort()).toEqual(both);
  });

  it.each([
    ['too many globs', ['*a'.repeat(120)], [`${'*b'.repeat(120)}*`]],
    [
      'too much work',
      Array.from({ length: 2_000 }, (_, n) => `*${n}${'x*'.repeat(50)}y`),
      Array.from({ length: 50 }, (_, n) => `*${n}${'x*'.repeat(50)}z`),
    ],
  ])('that takes %s is refused, soon', (_what, a, b) => {
    const started = performance.now();
    expect(() => intersectGlobs(a, [...b, ...a.map((source) => `${source.slice(0, -1)}*`)])).toThrow(IntersectionTooLarge);
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  it('of long lists of plain ids is found at once', () => {
    const ids = Array.from({ length: 200 }, (_, n) => `worker-${n}::${'function'.repeat(20)}`);
    expect(intersectGlobs(ids, ['worker-*', ...ids.slice(0, 100)])).toHaveLength(200);
  });
});

describe('the policy of a child', () => {
  const policy = fc.record({ allow: globs, deny: globs, expose: fc.constantFrom('native' as const, 'agent_trigger' as const) });

  it('lets pass only what its parent and its own wishes both let pass, down any number of generations', () => {
    fc.assert(
      fc.property(policy, fc.option(policy), fc.option(policy), id, (parent, wish, grandWish, text) => {
        const child = narrow(parent, wish);
        const grandchild = narrow(child, grandWish);
        const open = (options: typeof child): boolean => compilePolicy(options).refusal(text) === null;
        expect(open(child)).toBe(open(parent) && (wish === null || open(wish)));
        expect(open(grandchild)).toBe(open(child) && (grandWish === null || open(grandWish)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('of a parent that may call nothing lets nothing pass', () => {
    expect(narrow(null, { allow: ['*'], deny: [], expose: 'native' })).toBe(null);
  });
});
