/** Edits (insert, remove, replace, swap of neighbours) between two texts. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/** At most three of `known` that someone who wrote `given` may have meant, the closest first. */
export function closeTo(given: string, known: readonly string[]): string[] {
  const wanted = given.toLowerCase();
  const limit = Math.max(2, Math.floor(given.length / 4));
  const score = (name: string): number => {
    const lower = name.toLowerCase();
    if (wanted.length >= 3 && (lower.includes(wanted) || wanted.includes(lower))) return 0.5;
    return distance(wanted, lower);
  };
  const near = [...new Set(known)]
    .map((name) => ({ name, off: score(name) }))
    .filter(({ off }) => off <= limit)
    .sort((a, b) => a.off - b.off || (a.name < b.name ? -1 : 1));
  const best = near[0]?.off ?? 0;
  return near
    .filter(({ off }) => off <= best + 1)
    .slice(0, 3)
    .map(({ name }) => name);
}

/** `a`, `a or b`, `a, b or c`. */
export const either = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`;
