/** Tells whether a path with `/` between its parts is matched. */
export type PathMatcher = (path: string) => boolean;

const MAX_ALTERNATIVES = 64;

/**
 * Compiles globs: `*` and `?` stay within a part, `**` spans parts, `[a-z]`, `[!a]`, `{a,b}` and `\` work as usual.
 * A glob without `/` matches the last part at any depth. Matching takes time bounded by the product of the lengths,
 * whatever the glob, which a translation to regular expressions does not promise.
 */
export function compileGlobs(globs: readonly string[]): PathMatcher {
  const compiled = globs.flatMap((glob) => expandBraces(glob)).map(compileOne);
  return (path) => {
    const parts = path.split('/');
    return compiled.some((matches) => matches(parts));
  };
}

function compileOne(glob: string): (parts: readonly string[]) => boolean {
  const pattern = glob
    .replace(/^\.?\//, '')
    .split('/')
    .filter((part) => part !== '');
  if (!glob.includes('/')) return (parts) => matchPart(glob, parts.at(-1) ?? '');
  return (parts) => matchParts(pattern, parts);
}

/** Greedy match with one point of return, the last `**`: an earlier one never needs to take more. */
function matchParts(pattern: readonly string[], parts: readonly string[]): boolean {
  let p = 0;
  let at = 0;
  let starP = -1;
  let starAt = 0;
  while (at < parts.length) {
    const want = pattern[p];
    if (want === '**') {
      starP = p++;
      starAt = at;
    } else if (want !== undefined && matchPart(want, parts[at] ?? '')) {
      p++;
      at++;
    } else if (starP >= 0) {
      p = starP + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  while (pattern[p] === '**') p++;
  return p === pattern.length;
}

/** Matches one part of a path; the same greedy scheme with `*`. */
export function matchPart(pattern: string, text: string): boolean {
  let p = 0;
  let at = 0;
  let starP = -1;
  let starAt = 0;
  while (at < text.length) {
    const token = p < pattern.length ? tokenAt(pattern, p) : undefined;
    if (token?.kind === 'star') {
      starP = p = token.next;
      starAt = at;
    } else if (token !== undefined && accepts(token, text.charAt(at))) {
      p = token.next;
      at++;
    } else if (starP >= 0) {
      p = starP;
      at = ++starAt;
    } else {
      return false;
    }
  }
  while (p < pattern.length && pattern[p] === '*') p++;
  return p === pattern.length;
}

type Token =
  | { kind: 'star' | 'any'; next: number }
  | { kind: 'char'; char: string; next: number }
  | { kind: 'set'; negated: boolean; body: string; next: number };

function tokenAt(pattern: string, at: number): Token {
  const char = pattern.charAt(at);
  if (char === '*') return { kind: 'star', next: at + 1 };
  if (char === '?') return { kind: 'any', next: at + 1 };
  if (char === '\\' && at + 1 < pattern.length) return { kind: 'char', char: pattern.charAt(at + 1), next: at + 2 };
  if (char === '[') {
    const end = pattern.indexOf(']', at + (/[!^]/.test(pattern.charAt(at + 1)) ? 3 : 2));
    if (end > 0) {
      const negated = /[!^]/.test(pattern.charAt(at + 1));
      return { kind: 'set', negated, body: pattern.slice(at + (negated ? 2 : 1), end), next: end + 1 };
    }
  }
  return { kind: 'char', char, next: at + 1 };
}

function accepts(token: Exclude<Token, { kind: 'star' }> | Token, char: string): boolean {
  switch (token.kind) {
    case 'star':
    case 'any':
      return true;
    case 'char':
      return token.char === char;
    case 'set': {
      let inSet = false;
      for (let i = 0; i < token.body.length; i++) {
        const from = token.body.charAt(i);
        if (token.body.charAt(i + 1) === '-' && i + 2 < token.body.length) {
          if (from <= char && char <= token.body.charAt(i + 2)) inSet = true;
          i += 2;
        } else if (from === char) {
          inSet = true;
        }
      }
      return inSet !== token.negated;
    }
    default:
      return token satisfies never;
  }
}

/** Writes out `{a,b}`, at most 64 alternatives; a brace without a comma or an end stands for itself. */
function expandBraces(glob: string): string[] {
  let done: string[] = [];
  let open = [glob];
  while (open.length > 0 && done.length + open.length <= MAX_ALTERNATIVES) {
    const next: string[] = [];
    for (const one of open) {
      const found = /^(.*?)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(one);
      if (found === null) done.push(one);
      else for (const choice of (found[2] ?? '').split(',')) next.push(`${found[1]}${choice}${found[3]}`);
    }
    open = next;
  }
  done = [...done, ...open].slice(0, MAX_ALTERNATIVES);
  return done;
}
