import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileGlob, compileGlobs, globFault } from './glob.js';
import { intersectGlobs } from './intersect.js';

/** Whether a glob matches, from its definition: a star is nothing, or one character and a star. */
function naive(glob: string, id: string): boolean {
  const [first, rest] = [glob[0], glob.slice(1)];
  if (first === undefined) return id === '';
  if (first === '*') return naive(rest, id) || (id !== '' && naive(glob, id.slice(1)));
  return id[0] === first && naive(rest, id.slice(1));
}

/** Short strings over few letters, so that globs and ids meet often. */
const id = fc.string({ unit: fc.constantFrom('a', 'b', ':', '\n'), maxLength: 8 });
const glob = fc.string({ unit: fc.constantFrom('a', 'b', ':', '*'), maxLength: 7 }).map((text) => text.replaceAll(/\*+/g, '*'));

describe('compileGlob', () => {
  it('matches exactly as the definition says, also over line breaks', () => {
    fc.assert(
      fc.property(glob, id, (source, name) => {
        expect(compileGlob(source).matches(name)).toBe(naive(source, name));
      }),
      { numRuns: 5_000 },
    );
  });

  it('takes everything but a star literally', () => {
    for (const source of ['!a', '[ab]', '{a,b}', 'a?', 'a.c', '(a|b)', 'a+', '^a$', 'a\\*']) {
      expect(compileGlob(source.replaceAll('*', '')).matches(source.replaceAll('*', ''))).toBe(true);
    }
    expect(compileGlob('[ab]').matches('a')).toBe(false);
    expect(compileGlob('a.c').matches('abc')).toBe(false);
    expect(compileGlob('!a').matches('b')).toBe(false);
  });

  it('takes linear time on the worst input', () => {
    const hostile = compileGlob(`${'a*'.repeat(120)}b`);
    const long = 'a'.repeat(200_000);
    const startedAt = performance.now();
    expect(hostile.matches(long)).toBe(false);
    expect(compileGlob(`*${'a*'.repeat(120)}b*`).matches(long)).toBe(false);
    expect(compileGlob(`${'a*'.repeat(120)}a`).matches(long)).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});

describe('globFault', () => {
  it.each(['*', 'coder::*', 'a::b-c_d.e', '*::get', 'a*b*c', 'engine::functions::list'])('takes %j', (source) => {
    expect(globFault(source)).toBeNull();
  });
  it.each([
    ['', 'empty'],
    ['   ', 'empty'],
    ['a::**', '"**"'],
    ['**', '"**"'],
    ['!a', '"!"'],
    ['[a]', '"["'],
    ['a]', '"]"'],
    ['{a,b}', '"{"'],
    ['a?', '"?"'],
    ['(a)', '"("'],
    ['a|b', '"|"'],
    ['a+', '"+"'],
    ['^a', '"^"'],
    ['a$', '"$"'],
    ['a\\b', '"\\"'],
    ['a\nb', 'line break'],
    ['a\u0000', 'control'],
    ['a b', 'space'],
    ['a\u00a0b', 'space'],
    ['a\u2028', 'line break'],
    ['a'.repeat(257), '256'],
  ])('refuses %j and says why', (source, why) => {
    expect(globFault(source)).toContain(why);
  });
  it('is told with the place of the glob', () => {
    expect(() => compileGlobs(['a', 'b::**'], 'options.functions.allow')).toThrow(
      /^harness\/invalid_request: options\.functions\.allow\[1\]: the glob "b::\*\*"/,
    );
    expect(compileGlobs(['a', 'b::*'], 'x')('b::c')).toBe(true);
  });
});

describe('intersectGlobs', () => {
  it('I7: matches exactly what both policies match', () => {
    fc.assert(
      fc.property(
        fc.array(glob, { maxLength: 3 }),
        fc.array(glob, { maxLength: 3 }),
        fc.array(id, { minLength: 5, maxLength: 20 }),
        (left, right, ids) => {
          const both = intersectGlobs(left, right);
          const any = (globs: readonly string[], name: string): boolean => globs.some((source) => naive(source, name));
          for (const name of ids) expect(any(both, name)).toBe(any(left, name) && any(right, name));
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
