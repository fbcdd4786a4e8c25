import { cut, pad, width } from './format.js';
import type { Style } from './style.js';

/** A column of a table. */
export interface Column<Row> {
  title: string;
  /** Plain text, one line. */
  text(row: Row): string;
  /** Colours what is shown. */
  paint?(text: string, row: Row): string;
  /** May be cut when the terminal is narrow. */
  flexible?: boolean;
  right?: boolean;
  /** Left out first when the terminal is narrow: the highest number first. */
  dropOrder?: number;
}

const GAP = 2;
/** Least columns that a flexible column keeps. */
const LEAST = 12;

/** Lines of a table that fits into `columns`; where they are infinite, as in a pipe, nothing is cut or left out. */
export function table<Row>(rows: readonly Row[], all: readonly Column<Row>[], columns: number, style: Style): string[] {
  const natural = (column: Column<Row>): number => Math.max(width(column.title), ...rows.map((row) => width(column.text(row))));
  const least = (column: Column<Row>): number => (column.flexible === true ? Math.min(LEAST, natural(column)) : natural(column));
  const needed = (of: readonly Column<Row>[]): number => of.reduce((sum, column) => sum + least(column) + GAP, -GAP);
  let shown = [...all];
  while (needed(shown) > columns) {
    const drop = shown.filter((column) => column.dropOrder !== undefined).sort((a, b) => (b.dropOrder ?? 0) - (a.dropOrder ?? 0))[0];
    if (drop === undefined) break;
    shown = shown.filter((column) => column !== drop);
  }
  let spare = columns - needed(shown);
  const widths = shown.map((column) => {
    const extra = Math.min(spare, natural(column) - least(column));
    spare -= extra;
    return least(column) + extra;
  });
  const line = (cells: readonly string[], paint: (text: string, index: number) => string): string =>
    cells
      .map((cell, index) => {
        const room = widths[index] ?? 0;
        const text = cut(cell, room);
        const filled =
          shown[index]?.right === true
            ? ' '.repeat(Math.max(0, room - width(text))) + paint(text, index)
            : paint(text, index) + pad('', room - width(text));
        return filled;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  return [
    line(
      shown.map((column) => column.title),
      (text) => style.dim(text),
    ),
    ...rows.map((row) =>
      line(
        shown.map((column) => column.text(row)),
        (text, index) => shown[index]?.paint?.(text, row) ?? text,
      ),
    ),
  ];
}
