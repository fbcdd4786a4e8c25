interface CronField {
  name: string;
  min: number;
  max: number;
  words?: readonly string[];
}
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const FIELDS: readonly CronField[] = [
  { name: 'second', min: 0, max: 59 },
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of the month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'day of the week', min: 0, max: 7, words: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
  { name: 'year', min: 1970, max: 2199 },
];
const DAY = 3;
const MONTH = 4;
const WEEKDAY = 5;
const LONGEST_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** A cron expression that was understood. */
export interface CronExpression {
  /** The six fields from second to day of the week, with plain numbers, ranges, steps and `*` only. */
  fields: string;
  /** The years in which it fires; null = every year. */
  years: ReadonlySet<number> | null;
}

/** Reads an expression of six fields (second to day of the week), or seven with the year; or says what it must be. */
export function parseCron(expression: string): { ok: true; value: CronExpression } | { ok: false; problem: string } {
  const parts = expression.trim().split(/\s+/);
  if (parts.length !== 6 && parts.length !== 7) {
    const problem = `must be a cron expression of six fields (second minute hour day-of-month month day-of-week) or seven (year), but has ${parts.length}`;
    return { ok: false, problem };
  }
  const values = parts.map((part, index) => valuesOf(part, FIELDS[index] as CronField));
  const wrong = values.indexOf(null);
  if (wrong >= 0) {
    const { name, min, max } = FIELDS[wrong] as CronField;
    return { ok: false, problem: `must be a cron expression, but its ${name} is not one (${min} to ${max}, with * - / and commas)` };
  }
  if (!hasDate(parts, values as Set<number>[])) {
    return { ok: false, problem: 'must be a cron expression, but its day of the month is in none of its months' };
  }
  const fields = parts.slice(0, 6).map((part, index) => plain(part, FIELDS[index] as CronField));
  const years = parts[6] === undefined || isAny(parts[6]) ? null : (values[6] as Set<number>);
  return { ok: true, value: { fields: fields.join(' '), years } };
}

const isAny = (part: string): boolean => part === '*' || part === '?';

/** Is there any date that it means? A day of the week is in every month. */
function hasDate(parts: readonly string[], values: readonly Set<number>[]): boolean {
  if (!isAny(parts[WEEKDAY] as string)) return true;
  const earliest = Math.min(...(values[DAY] as Set<number>));
  return [...(values[MONTH] as Set<number>)].some((month) => earliest <= (LONGEST_MONTH[month - 1] as number));
}

/** The numbers that a field means; null when it is none. */
function valuesOf(part: string, of: CronField): Set<number> | null {
  const values = new Set<number>();
  for (const item of part.split(',')) {
    const range = rangeOf(item, of);
    if (range === null) return null;
    for (let at = range.from; at <= range.to; at += range.step) values.add(at);
  }
  return values;
}

function rangeOf(item: string, of: CronField): { from: number; to: number; step: number } | null {
  const [range = '', step, ...rest] = item.split('/');
  if (rest.length > 0) return null;
  if (step !== undefined && !(/^\d+$/.test(step) && Number(step) >= 1)) return null;
  const every = step === undefined ? 1 : Number(step);
  if (isAny(range)) return { from: of.min, to: of.max, step: every };
  const ends = range.split('-').map((end) => numberOf(end, of));
  const [from, to = step === undefined ? from : of.max] = ends;
  if (ends.length > 2 || from === null || from === undefined || to === null || to === undefined) return null;
  return from >= of.min && to <= of.max && from <= to ? { from, to, step: every } : null;
}

function numberOf(text: string, of: CronField): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const index = of.words?.indexOf(text.toLowerCase()) ?? -1;
  return index < 0 ? null : index + (of.name === 'month' ? 1 : 0);
}

/** The same with numbers for words and `*` for `?`. */
const plain = (part: string, of: CronField): string => part.replaceAll('?', '*').replace(/[a-z]+/gi, (word) => String(numberOf(word, of)));
