import { CoderError } from '../errors.js';

export type LineOp =
  | { op: 'insert'; at_line: number; content: string }
  | { op: 'remove'; from_line: number; to_line: number }
  | { op: 'update_lines'; from_line: number; to_line: number; content: string };
export interface ReplaceOp {
  op: 'replace';
  pattern: string;
  replacement: string;
  ignore_case?: boolean;
  dot_matches_newline?: boolean;
  expect_matches?: number | null;
}
export type UpdateOp = LineOp | ReplaceOp;

/** A region of a text that an op wrote, as offsets in UTF-16 units. */
export interface Region {
  opIndex: number;
  start: number;
  end: number;
}

interface Placed {
  opIndex: number;
  /** Index of the first line that the op takes away, or before which it inserts. */
  from: number;
  /** Number of lines that it takes away. */
  taken: number;
  lines: string[];
}

/** The lines of a text without their ends; a newline at the end begins no further line. */
export function splitLines(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** Lines that `content` stands for; one newline at its end is not a further line, and nothing is one empty line. */
const contentLines = (content: string): string[] => {
  const lines = splitLines(content);
  return lines.length === 0 ? [''] : lines;
};

/**
 * Applies line ops to a text. All line numbers are those of the text as it is given, whatever the other ops do; ops that
 * touch the same lines are refused. Returns the new text and where each op wrote.
 */
export function applyLineOps(text: string, ops: readonly { index: number; op: LineOp }[]): { text: string; regions: Region[] } {
  if (ops.length === 0) return { text, regions: [] };
  const lines = splitLines(text);
  const placed = ops.map(({ index, op }) => place(index, op, lines.length)).sort(byPlace);
  let free = 0;
  for (const one of placed) {
    if (one.from < free) throw new CoderError('C210', `ops ${describe(placed, one)} touch the same lines; merge them into one op`);
    free = Math.max(free, one.from + one.taken);
  }
  const out: string[] = [];
  const spans: { opIndex: number; first: number; count: number }[] = [];
  let next = 0;
  for (const one of placed) {
    while (next < one.from) out.push(lines[next++] ?? '');
    spans.push({ opIndex: one.opIndex, first: out.length, count: one.lines.length });
    for (const line of one.lines) out.push(line);
    next = one.from + one.taken;
  }
  while (next < lines.length) out.push(lines[next++] ?? '');
  const newlineAtEnd = text === '' || text.endsWith('\n');
  const offsets = offsetsOf(out);
  const joined = out.length === 0 ? '' : out.join('\n') + (newlineAtEnd ? '\n' : '');
  return {
    text: joined,
    regions: spans.map(({ opIndex, first, count }) => ({
      opIndex,
      start: Math.min(offsets[first] ?? 0, joined.length),
      end: count === 0 ? Math.min(offsets[first] ?? 0, joined.length) : (offsets[first + count] ?? 0) - 1,
    })),
  };
}

/** Ascending; at the same line an insert comes before what happens to the line itself, and inserts keep their order. */
const byPlace = (a: Placed, b: Placed): number => a.from - b.from || Math.min(a.taken, 1) - Math.min(b.taken, 1) || a.opIndex - b.opIndex;

const describe = (placed: readonly Placed[], later: Placed): string => {
  const earlier = placed.find((one) => one !== later && one.from <= later.from && later.from < one.from + one.taken);
  return `${earlier?.opIndex ?? '?'} and ${later.opIndex}`;
};

function place(opIndex: number, op: LineOp, count: number): Placed {
  if (op.op === 'insert') {
    if (op.at_line < 1 || op.at_line > count + 1) {
      throw new CoderError('C210', `op ${opIndex}: at_line is ${op.at_line}, but the file has ${count} lines; it must be 1 to ${count + 1}`);
    }
    return { opIndex, from: op.at_line - 1, taken: 0, lines: contentLines(op.content) };
  }
  const { from_line, to_line } = op;
  if (from_line < 1 || to_line < from_line || to_line > count) {
    throw new CoderError('C210', `op ${opIndex}: lines ${from_line} to ${to_line} are not in the file, which has ${count} lines`);
  }
  return { opIndex, from: from_line - 1, taken: to_line - from_line + 1, lines: op.op === 'remove' ? [] : contentLines(op.content) };
}

/** Where each line begins, and where one more would begin. */
function offsetsOf(lines: readonly string[]): number[] {
  const offsets = [0];
  let at = 0;
  for (const line of lines) offsets.push((at += line.length + 1));
  return offsets;
}
