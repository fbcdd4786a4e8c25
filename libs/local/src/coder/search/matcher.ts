import { Isolate, IsolateError, type Load } from '../../confine/index.js';
import { CoderError } from '../errors.js';

/** The first match in a line: index of the line, then start and end in UTF-16 units. */
export type LineMatch = readonly [line: number, start: number, end: number];

/** Looks for a query in lines. */
export interface LineMatcher {
  match(lines: readonly string[]): Promise<readonly LineMatch[]>;
  close(): Promise<void>;
}

/** How long one batch of lines may take under a pattern. */
const BATCH_MS = 3_000;

/** Finds `query` as it stands. */
export function literalMatcher(query: string, ignoreCase: boolean): LineMatcher {
  const insensitive = ignoreCase ? new RegExp(query.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'), 'iu') : null;
  const find = (line: string): readonly [number, number] | null => {
    if (insensitive !== null) {
      const found = insensitive.exec(line);
      return found === null ? null : [found.index, found.index + found[0].length];
    }
    const at = line.indexOf(query);
    return at < 0 ? null : [at, at + query.length];
  };
  return {
    match: (lines) => {
      const matches: LineMatch[] = [];
      for (let i = 0; i < lines.length; i++) {
        const found = find(lines[i] ?? '');
        if (found !== null) matches.push([i, ...found]);
      }
      return Promise.resolve(matches);
    },
    close: () => Promise.resolve(),
  };
}

interface Pattern {
  pattern: string;
  ignoreCase: boolean;
}

/** Self-contained: runs in an isolate. */
function makeRegexLines(load: Load, setup: Pattern): (lines: readonly string[]) => LineMatch[] {
  const { RE2JS } = load('re2js') as typeof import('re2js');
  const regex = RE2JS.compile(setup.pattern, setup.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  return (lines) => {
    const matches: LineMatch[] = [];
    lines.forEach((line, i) => {
      const matcher = regex.matcher(line);
      if (matcher.find()) matches.push([i, matcher.start(), matcher.end()]);
    });
    return matches;
  };
}

/** Finds a regular expression (RE2 syntax), on a thread of its own and for a bounded time. */
export function regexMatcher(pattern: string, ignoreCase: boolean, signal: AbortSignal): LineMatcher {
  const isolate = new Isolate(makeRegexLines, { pattern, ignoreCase });
  return {
    match: async (lines) => {
      try {
        return await isolate.run(lines, { timeoutMs: BATCH_MS, signal });
      } catch (error) {
        if (!(error instanceof IsolateError) || error.reason === 'aborted') throw error;
        const what =
          error.reason === 'timeout'
            ? `took more than ${BATCH_MS} ms on a few lines; make it simpler`
            : `is not valid RE2 syntax: ${error.message}`;
        throw new CoderError('C210', `query ${what}`, { cause: error });
      }
    },
    close: () => isolate.close(),
  };
}
