import { type Check, text } from './rules.js';

/** A glob of function ids, where `*` stands for any text and nothing else is special. */
export const functionGlob: Check = (value) => {
  const blank = text('a glob of function ids')(value);
  if (blank !== null) return blank;
  const glob = value as string;
  if (/\s/.test(glob)) return 'must be a glob of function ids, but holds a space';
  const special = /[!?{}[\]()|,\\]/.exec(glob);
  return special === null ? null : `must be a glob of function ids, where only * is special: "${special[0]}" would never match`;
};

/** A glob of paths as the file functions take it. */
export const pathGlob: Check = (value) => {
  const blank = text('a glob of paths')(value);
  if (blank !== null) return blank;
  return balanced(value as string) ? null : 'must be a glob of paths, but a bracket in it is not closed';
};

function balanced(glob: string): boolean {
  let braces = 0;
  let inClass = false;
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at];
    if (char === '\\') at++;
    else if (inClass) inClass = char !== ']';
    else if (char === '[') inClass = true;
    else if (char === '{') braces++;
    else if (char === '}' && --braces < 0) return false;
  }
  return braces === 0 && !inClass;
}

interface CronField {
  name: string;
  min: number;
  max: number;
  words?: readonly string[];
}
const CRON_FIELDS: readonly CronField[] = [
  { name: 'second', min: 0, max: 59 },
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of the month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, words: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'] },
  { name: 'day of the week', min: 0, max: 7, words: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
  { name: 'year', min: 1970, max: 2199 },
];

/** A cron expression of six fields (second to day of the week), or seven with the year. */
export const cronExpression: Check = (value) => {
  const blank = text('a cron expression')(value);
  if (blank !== null) return blank;
  const parts = (value as string).trim().split(/\s+/);
  if (parts.length !== 6 && parts.length !== 7) {
    return `must be a cron expression of six fields (second minute hour day-of-month month day-of-week) or seven (year), but has ${parts.length}`;
  }
  const wrong = parts.findIndex((part, index) => !isCronField(part, CRON_FIELDS[index] as CronField));
  if (wrong < 0) return null;
  const { name, min, max } = CRON_FIELDS[wrong] as CronField;
  return `must be a cron expression, but its ${name} is not one (${min} to ${max}, with * - / and commas)`;
};

const isCronField = (part: string, of: CronField): boolean => part.split(',').every((item) => isCronItem(item, of));

function isCronItem(item: string, of: CronField): boolean {
  const [range = '', step, ...rest] = item.split('/');
  if (rest.length > 0) return false;
  if (step !== undefined && !(/^\d+$/.test(step) && Number(step) >= 1)) return false;
  if (range === '*' || range === '?') return true;
  const ends = range.split('-').map((end) => cronNumber(end, of));
  const [from, to = from] = ends;
  if (ends.length > 2 || from === null || from === undefined || to === null || to === undefined) return false;
  return from >= of.min && to <= of.max && from <= to;
}

function cronNumber(text: string, of: CronField): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const index = of.words?.indexOf(text.toLowerCase()) ?? -1;
  return index < 0 ? null : of.name === 'month' ? index + 1 : index;
}
