import { Isolate, type Load } from '../../confine/index.js';
import { CoderError } from '../errors.js';
import type { Region, ReplaceOp } from './line-ops.js';

interface ReplaceInput {
  text: string;
  ops: { index: number; op: ReplaceOp }[];
  regions: Region[];
  maxLength: number;
  maxSites: number;
}
interface Replaced {
  text: string;
  regions: Region[];
  /** Matches of each op, in order. */
  totals: number[];
}
type ReplaceOutput = Replaced | { wrong: string };

const REPLACE_MS = 10_000;

/**
 * Applies replace ops one after the other to a whole text, on a thread of its own and for a bounded time. Regions keep
 * pointing at the same text, and each op adds one for each of its first `maxSites` matches.
 */
export async function applyReplaceOps(input: ReplaceInput, signal: AbortSignal): Promise<Replaced> {
  if (input.ops.length === 0) return { text: input.text, regions: input.regions, totals: [] };
  const isolate = new Isolate(makeReplace, null);
  try {
    const output = await isolate.run(input, { timeoutMs: REPLACE_MS, signal });
    if ('wrong' in output) throw new CoderError('C210', output.wrong);
    return output;
  } finally {
    await isolate.close();
  }
}

/** Self-contained: runs in an isolate. */
export function makeReplace(load: Load): (input: ReplaceInput) => ReplaceOutput {
  const { RE2JS } = load('re2js') as typeof import('re2js');
  type Part = string | { group: number };

  /** Splits a replacement into text and references: `$$`, `$1`, `${1}`, `$name`, `${name}`. */
  const partsOf = (replacement: string, groups: number, names: { [name: string]: number }): Part[] | string => {
    const parts: Part[] = [];
    const reference = /\$(?:(\$)|(\w+)|\{([^}]*)\})/g;
    let at = 0;
    for (let found = reference.exec(replacement); found !== null; found = reference.exec(replacement)) {
      parts.push(replacement.slice(at, found.index));
      at = found.index + found[0].length;
      const name = found[2] ?? found[3];
      if (name === undefined) {
        parts.push('$');
        continue;
      }
      const group = /^\d+$/.test(name) ? Number(name) : names[name];
      if (group === undefined || group > groups)
        return `replacement refers to ${found[0]}, which the pattern does not define; write a literal $ as $$`;
      parts.push({ group });
    }
    const rest = replacement.slice(at);
    if (rest.includes('$')) return 'replacement has a single $ that refers to nothing; write a literal $ as $$';
    parts.push(rest);
    return parts;
  };

  return (input) => {
    let text = input.text;
    let regions = input.regions;
    const totals: number[] = [];
    for (const { index, op } of input.ops) {
      const flags = (op.ignore_case === true ? RE2JS.CASE_INSENSITIVE : 0) | (op.dot_matches_newline === true ? RE2JS.DOTALL : 0);
      let regex: ReturnType<typeof RE2JS.compile>;
      try {
        regex = RE2JS.compile(op.pattern, flags);
      } catch (error) {
        return { wrong: `op ${index}: pattern is not valid RE2 syntax: ${error instanceof Error ? error.message : String(error)}` };
      }
      const parts = partsOf(op.replacement, regex.groupCount(), regex.namedGroups());
      if (typeof parts === 'string') return { wrong: `op ${index}: ${parts}` };
      const matcher = regex.matcher(text);
      const out: string[] = [];
      let length = 0;
      const push = (piece: string): void => {
        out.push(piece);
        length += piece.length;
      };
      const sites: Region[] = [];
      /** Where a match began and ended in the old text, and in the new one. */
      const moved: [from: number, to: number, newFrom: number, newTo: number][] = [];
      let at = 0;
      while (matcher.find()) {
        const from = matcher.start();
        push(text.slice(at, from));
        const newFrom = length;
        for (const part of parts) push(typeof part === 'string' ? part : (matcher.group(part.group) ?? ''));
        at = matcher.end();
        moved.push([from, at, newFrom, length]);
        if (sites.length < input.maxSites) sites.push({ opIndex: index, start: newFrom, end: length });
        if (length > input.maxLength)
          return { wrong: `op ${index}: the replacements make the file larger than ${input.maxLength} characters` };
      }
      push(text.slice(at));
      const expected = op.expect_matches ?? null;
      if (expected !== null && expected !== moved.length) {
        return { wrong: `op ${index}: the pattern matches ${moved.length} times, but expect_matches is ${expected}; nothing was written` };
      }
      const shift = (offset: number): number => {
        let low = 0;
        let high = moved.length;
        while (low < high) {
          const middle = (low + high) >> 1;
          if ((moved[middle]?.[0] ?? 0) < offset) low = middle + 1;
          else high = middle;
        }
        const last = moved[low - 1];
        if (last === undefined) return offset;
        return offset < last[1] ? last[3] : offset - last[1] + last[3];
      };
      regions = [...regions.map((r) => ({ ...r, start: shift(r.start), end: shift(r.end) })), ...sites];
      totals.push(moved.length);
      text = out.join('');
    }
    return { text, regions, totals };
  };
}
