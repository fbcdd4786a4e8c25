import { HARNESS_CODES, HarnessError } from '#libs/contracts';

/** A compiled glob of function ids. Only `*` is special: any run of characters. Everything else stands for itself. */
export interface Glob {
  readonly source: string;
  matches(id: string): boolean;
}

const RESERVED = /[![\]{}?()\\^$|+]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Says what is wrong with a glob of a policy, or null. What other glob languages give a meaning is refused, not ignored. */
export function globFault(source: string): string | null {
  const shown = JSON.stringify(source);
  if (source.trim() === '') return 'a glob may not be empty';
  if (CONTROL.test(source)) return `the glob ${shown} holds a line break or control character`;
  if (/\s/.test(source)) return `the glob ${shown} holds a space`;
  if (source.includes('**')) return `the glob ${shown} holds "**"; one "*" already matches any run of characters, also across "::"`;
  const found = RESERVED.exec(source)?.[0];
  if (found !== undefined) return `the glob ${shown} holds "${found}"; only "*" is special in a function glob`;
  if (source.length > 256) return 'a glob may be at most 256 characters long';
  return null;
}

/** Compiles a glob in linear time: no regular expression is built from it. */
export function compileGlob(source: string): Glob {
  const parts = source.split('*');
  const head = parts[0] ?? '';
  const tail = parts.at(-1) ?? '';
  const middle = parts.slice(1, -1).filter((part) => part !== '');
  if (parts.length === 1) return { source, matches: (id) => id === source };
  return {
    source,
    matches: (id) => {
      if (id.length < head.length + tail.length || !id.startsWith(head) || !id.endsWith(tail)) return false;
      const end = id.length - tail.length;
      let at = head.length;
      for (const part of middle) {
        const found = id.indexOf(part, at);
        if (found < 0 || found + part.length > end) return false;
        at = found + part.length;
      }
      return true;
    },
  };
}

/** Makes one matcher of several globs; throws `harness/invalid_request` that names the one at fault. */
export function compileGlobs(sources: readonly string[], field: string): (id: string) => boolean {
  for (const [index, source] of sources.entries()) {
    const fault = globFault(source);
    if (fault !== null) throw new HarnessError(HARNESS_CODES.invalidRequest, `${field}[${index}]: ${fault}`);
  }
  const globs = sources.map(compileGlob);
  return (id) => globs.some((glob) => glob.matches(id));
}
