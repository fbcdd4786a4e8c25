/**
 * How well the characters of `query` appear in `path`, in order and whatever their case: lower is better, null is no
 * match. What counts is how far apart the last match's ends are, and then how long the path is.
 */
export function fuzzyScore(query: string, path: string): number | null {
  const wanted = query.toLowerCase();
  const text = path.toLowerCase();
  let at = text.length;
  let last = -1;
  for (let i = wanted.length - 1; i >= 0; i--) {
    at = at === 0 ? -1 : text.lastIndexOf(wanted.charAt(i), at - 1);
    if (at < 0) return null;
    if (last < 0) last = at;
  }
  return (last - at) * 1_000 + path.length;
}
