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
  /** What it puts there, with line ends. */
  lines: string;
}

/** Offsets at which the lines of a text begin. A newline at the end begins no further line; an empty text has none. */
export function lineStarts(text: string): number[] {
  const starts: number[] = [];
  for (let at = 0; at < text.length; ) {
    starts.push(at);
    const end = text.indexOf('\n', at);
    at = end < 0 ? text.length : end + 1;
  }
  return starts;
}

/**
 * Applies line ops to a text. All line numbers are those of the text as it is given, whatever the other ops do; ops that
 * touch the same lines are refused. Returns the new text and where each op wrote.
 */
export function applyLineOps(text: string, ops: readonly { index: number; op: LineOp }[]): { text: string; regions: Region[] } {
  if (ops.length === 0) return { text, regions: [] };
  const ended = text === '' || text.endsWith('\n');
  const body = ended ? text : `${text}\n`;
  const starts = lineStarts(body);
  const placed = ops.map(({ index, op }) => place(index, op, starts.length)).sort(byPlace);
  assertApart(placed);
  const pieces: string[] = [];
  const regions: Region[] = [];
  let length = 0;
  const push = (piece: string): void => {
    pieces.push(piece);
    length += piece.length;
  };
  let next = 0;
  for (const { opIndex, from, taken, lines } of placed) {
    push(body.slice(next, starts[from] ?? body.length));
    const start = length;
    push(lines);
    regions.push({ opIndex, start, end: Math.max(start, length - 1) });
    next = starts[from + taken] ?? body.length;
  }
  push(body.slice(next));
  const joined = pieces.join('');
  const result = ended ? joined : joined.slice(0, -1);
  return {
    text: result,
    regions: regions.map((r) => ({ ...r, start: Math.min(r.start, result.length), end: Math.min(r.end, result.length) })),
  };
}

function assertApart(placed: readonly Placed[]): void {
  let free = 0;
  for (const one of placed) {
    if (one.from < free) throw new CoderError('C210', `ops ${describe(placed, one)} touch the same lines; merge them into one op`);
    free = Math.max(free, one.from + one.taken);
  }
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
      throw new CoderError(
        'C210',
        `op ${opIndex}: at_line is ${op.at_line}, but the file has ${count} lines; it must be 1 to ${count + 1}`,
      );
    }
    return { opIndex, from: op.at_line - 1, taken: 0, lines: withLineEnd(op.content) };
  }
  const { from_line, to_line } = op;
  if (from_line < 1 || to_line < from_line || to_line > count) {
    throw new CoderError('C210', `op ${opIndex}: lines ${from_line} to ${to_line} are not in the file, which has ${count} lines`);
  }
  return { opIndex, from: from_line - 1, taken: to_line - from_line + 1, lines: op.op === 'remove' ? '' : withLineEnd(op.content) };
}

/** One newline at the end of a content is not a further line; an empty content is one empty line. */
const withLineEnd = (content: string): string => (content.endsWith('\n') ? content : `${content}\n`);
