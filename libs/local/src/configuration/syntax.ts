import { parseCron } from '../cron/expression.js';
import { type Check, checkOf, text } from './rules.js';

/** A glob of function ids, where `*` stands for any text and nothing else is special. */
export const functionGlob: Check = checkOf({ type: 'string', pattern: '^[^\\s!?{}\\[\\]()|,\\\\]+$' }, (value) => {
  const blank = text('a glob of function ids')(value);
  if (blank !== null) return blank;
  const glob = value as string;
  if (/\s/.test(glob)) return 'must be a glob of function ids, but holds a space';
  const special = /[!?{}[\]()|,\\]/.exec(glob);
  return special === null ? null : `must be a glob of function ids, where only * is special: "${special[0]}" would never match`;
});

/** A glob of paths as the file functions take it. */
export const pathGlob: Check = checkOf({ type: 'string', pattern: '\\S' }, (value) => {
  const blank = text('a glob of paths')(value);
  if (blank !== null) return blank;
  return balanced(value as string) ? null : 'must be a glob of paths, but a bracket in it is not closed';
});

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

/** A cron expression of six fields (second to day of the week), or seven with the year. */
export const cronExpression: Check = checkOf({ type: 'string' }, (value) => {
  const blank = text('a cron expression')(value);
  if (blank !== null) return blank;
  const parsed = parseCron(value as string);
  return parsed.ok ? null : parsed.problem;
});
