import { lineStarts, type Region } from './line-ops.js';

/** What the file looks like where an op wrote, after all ops. `from_line` is 1-based. */
export interface Echo {
  op_index: number;
  from_line: number;
  lines: string[];
  /** Lines left out in the middle. */
  elided?: number;
  /** On echoes of a replace op: how many matches it replaced in the whole file. */
  total_replacements?: number;
}

const AROUND = 2;
const MAX_LINES = 20;
const ECHO_BYTES = 4_096;
const LINE_CHARS = 400;

/** Shows each region with two lines around it (line ops), or its first and last line (`totals` has its op). */
export function echoesOf(
  text: string,
  regions: readonly Region[],
  totals: ReadonlyMap<number, number>,
): { echoes: Echo[]; echoes_truncated: boolean; lineCount: number } {
  const starts = lineStarts(text);
  const lineCount = starts.length;
  const line = (index: number): string =>
    short(text.slice(starts[index] ?? text.length, starts[index + 1] ?? text.length).replace(/\n$/, ''));
  const echoes: Echo[] = [];
  let left = ECHO_BYTES;
  const silent = [...totals]
    .filter(([, total]) => total === 0)
    .map(([opIndex]) => ({ op_index: opIndex, from_line: 1, lines: [], total_replacements: 0 }));
  const shown = [...regions]
    .sort((a, b) => a.opIndex - b.opIndex || a.start - b.start)
    .map((region) => {
      const first = lineAt(starts, region.start);
      const last = Math.max(first, lineAt(starts, region.end));
      const total = totals.get(region.opIndex);
      if (total !== undefined) return site(line, region.opIndex, first, last, total);
      return around(line, region.opIndex, Math.max(0, first - AROUND), Math.min(lineCount - 1, last + AROUND));
    });
  for (const echo of [...shown, ...silent].sort((a, b) => a.op_index - b.op_index)) {
    const size = echo.lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    if (size > left) return { echoes, echoes_truncated: true, lineCount };
    left -= size;
    echoes.push(echo);
  }
  return { echoes, echoes_truncated: false, lineCount };
}

function around(line: (index: number) => string, opIndex: number, first: number, last: number): Echo {
  const count = last - first + 1;
  const all = (from: number, length: number): string[] => Array.from({ length: Math.max(0, length) }, (_, i) => line(from + i));
  if (count <= MAX_LINES) return { op_index: opIndex, from_line: first + 1, lines: all(first, count) };
  const half = MAX_LINES / 2;
  return {
    op_index: opIndex,
    from_line: first + 1,
    lines: [...all(first, half), ...all(last + 1 - half, half)],
    elided: count - MAX_LINES,
  };
}

function site(line: (index: number) => string, opIndex: number, first: number, last: number, total: number): Echo {
  const ends = first === last ? [first] : [first, last];
  const echo: Echo = { op_index: opIndex, from_line: first + 1, lines: ends.map(line), total_replacements: total };
  return last - first > 1 ? { ...echo, elided: last - first - 1 } : echo;
}

const short = (line: string): string =>
  line.length <= LINE_CHARS ? line : `${line.slice(0, LINE_CHARS).replace(/[\ud800-\udbff]$/, '')}…`;

/** Index of the line that holds `offset`. */
function lineAt(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
