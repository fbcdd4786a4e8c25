import { pino } from 'pino';
import type { OpenRuntimeOptions } from '#libs/local';
import type { Output } from '../render/output.js';
import { redact } from '../render/redact.js';
import { sanitizeLine } from '../render/sanitize.js';
import type { Style } from '../render/style.js';

type Log = NonNullable<OpenRuntimeOptions['log']>;
interface Line {
  level: string;
  time: string;
  msg: string;
  [key: string]: unknown;
}

/** The worker's log on `output`: JSON lines, or short lines where a person reads along. Values of secret environment variables never get into it. */
export function workerLog(output: Output, style: Style, env: NodeJS.ProcessEnv, debug: boolean): Log {
  const person = output.stream.isTTY === true;
  const write = (line: string): void => {
    const safe = redact(line, env);
    output.write(person ? `${forPerson(JSON.parse(safe) as Line, style)}\n` : safe);
  };
  const logger = pino(
    {
      base: null,
      level: debug ? 'debug' : 'info',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    { write },
  );
  return (level, message, context) => logger[level](plain(context), message);
}

/** Errors in a context, as text: their stacks and causes may hold what a log must not. */
function plain(context: { readonly [key: string]: unknown }): { [key: string]: unknown } {
  return Object.fromEntries(Object.entries(context).map(([key, value]) => [key, value instanceof Error ? value.message : value]));
}

function forPerson({ level, time, msg, ...context }: Line, style: Style): string {
  const paint = level === 'error' ? style.red : level === 'warn' ? style.yellow : level === 'debug' ? style.dim : style.cyan;
  const details = Object.entries(context).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${style.dim(time.slice(11, 19))} ${paint(level.padEnd(5))} ${sanitizeLine(msg)}${details.length === 0 ? '' : ` ${style.dim(sanitizeLine(details.join(' ')))}`}`;
}
