import { compileGlob } from './glob.js';

/** More globs than this are not kept, and more pairs of places in two globs not looked at: an intersection that needs them is refused. */
const MAX_GLOBS = 256;
const MAX_PLACES = 500_000;

/** An intersection would need too many globs to write down, or too much work. */
export class IntersectionTooLarge extends Error {
  override readonly name = 'IntersectionTooLarge';
  constructor() {
    super(`the two policies cannot be put together in ${MAX_GLOBS} globs; use fewer globs, and fewer "*" in them`);
  }
}

/**
 * The globs that match exactly the ids which some glob of `a` and some glob of `b` both match. Two globs meet in a
 * finite union of globs, since one of two stars that face each other always ends first. Throws `IntersectionTooLarge`.
 */
export function intersectGlobs(a: readonly string[], b: readonly string[]): string[] {
  const found = new Set<string>();
  const work = { places: 0 };
  for (const left of a) {
    for (const right of b) {
      for (const glob of intersectTwo(left, right, work)) found.add(glob);
      if (found.size > MAX_GLOBS) throw new IntersectionTooLarge();
    }
  }
  return withoutCovered([...found]);
}

function intersectTwo(a: string, b: string, work: { places: number }): Iterable<string> {
  if (!b.includes('*')) return compileGlob(a).matches(b) ? [b] : [];
  if (!a.includes('*')) return compileGlob(b).matches(a) ? [a] : [];
  const memo = new Map<number, Set<string>>();
  const meet = (i: number, j: number): Set<string> => {
    const key = i * (b.length + 1) + j;
    const known = memo.get(key);
    if (known !== undefined) return known;
    work.places += 1;
    if (work.places > MAX_PLACES) throw new IntersectionTooLarge();
    const result = new Set<string>();
    memo.set(key, result);
    const x = a[i];
    const y = b[j];
    if (x === undefined && y === undefined) result.add('');
    else if (x === '*' && y === '*') {
      for (const rest of meet(i + 1, j)) result.add(star(rest));
      for (const rest of meet(i, j + 1)) result.add(star(rest));
    } else if (x === '*') {
      for (const rest of meet(i + 1, j)) result.add(rest);
      if (y !== undefined) for (const rest of meet(i, j + 1)) result.add(y + rest);
    } else if (y === '*') {
      for (const rest of meet(i, j + 1)) result.add(rest);
      if (x !== undefined) for (const rest of meet(i + 1, j)) result.add(x + rest);
    } else if (x !== undefined && x === y) for (const rest of meet(i + 1, j + 1)) result.add(x + rest);
    if (result.size > MAX_GLOBS) throw new IntersectionTooLarge();
    return result;
  };
  return meet(0, 0);
}

/** A star before a glob; two stars in a row are one. */
const star = (glob: string): string => (glob.startsWith('*') ? glob : `*${glob}`);

/** Leaves out what another glob of the list covers. A glob that matches another's text with its stars as letters covers it. */
function withoutCovered(globs: readonly string[]): string[] {
  const kept = [...globs].sort((x, y) => x.length - y.length || (x < y ? -1 : 1));
  return kept.filter(
    (glob, index) =>
      !kept.some((other, at) => at !== index && other !== glob && covers(other, glob) && !(covers(glob, other) && at > index)),
  );
}

const covers = (wide: string, narrow: string): boolean => compileGlob(wide).matches(narrow.replaceAll('*', '\u0000'));
