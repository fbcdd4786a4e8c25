import { compileGlobs, matchPart, type PathMatcher } from '../../confine/index.js';

interface Rule {
  negated: boolean;
  foldersOnly: boolean;
  matches: PathMatcher;
}

/** The rules of one `.gitignore` file; paths are relative to its folder. */
export class IgnoreFile {
  private readonly rules: Rule[];

  constructor(text: string) {
    this.rules = text
      .split(/\r?\n/)
      .map(ruleOf)
      .filter((rule) => rule !== null);
  }

  /** True or false when a rule decides about the path, null when none does; the last one that matches decides. */
  decide(path: string, isFolder: boolean): boolean | null {
    for (let i = this.rules.length - 1; i >= 0; i--) {
      const rule = this.rules[i];
      if (rule !== undefined && (isFolder || !rule.foldersOnly) && rule.matches(path)) return !rule.negated;
    }
    return null;
  }
}

function ruleOf(line: string): Rule | null {
  if (line.startsWith('#')) return null;
  let glob = line.replace(/(?<!\\) +$/, '').replace(/\\ /g, ' ');
  const negated = glob.startsWith('!');
  if (negated) glob = glob.slice(1);
  const foldersOnly = glob.endsWith('/');
  if (foldersOnly) glob = glob.slice(0, -1);
  if (glob === '') return null;
  const anchored = glob.includes('/');
  // Braces mean nothing in a .gitignore.
  const literal = glob.replace(/\{/g, '\\{');
  if (!anchored) return { negated, foldersOnly, matches: (path) => matchPart(literal, path.slice(path.lastIndexOf('/') + 1)) };
  // A trailing `/**` means everything inside, and not the folder itself.
  return { negated, foldersOnly, matches: compileGlobs([literal.endsWith('/**') ? `${literal}/*` : `/${literal.replace(/^\//, '')}`]) };
}
