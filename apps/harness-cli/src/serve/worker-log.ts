import { pino } from 'pino';
import { type OpenRuntimeOptions, SecretFilter } from '#libs/local';
import type { Output } from '../render/output.js';
import { sanitizeLine } from '../render/sanitize.js';
import type { Style } from '../render/style.js';
import { logValue } from './log-value.js';

type Log = NonNullable<OpenRuntimeOptions['log']>;
interface Line {
  level: string;
  time: string;
  msg: string;
  [key: string]: unknown;
}

/** The log of a worker. */
export interface WorkerLog {
  log: Log;
  /** Gives the secrets that are known besides those of the environment, from now on asked for with each line. */
  hide(secrets: () => readonly string[]): void;
}

/**
 * The worker's log on `output`: JSON lines, or short lines where a person reads along. No secret that the process knows gets into it,
 * whatever it stands in.
 */
export function workerLog(output: Output, style: Style, env: NodeJS.ProcessEnv, debug: boolean): WorkerLog {
  const person = output.stream.isTTY === true;
  let more = (): readonly string[] => [];
  const secrets = new SecretFilter(env, () => more());
  const clean = (text: string): string => secrets.clean(text);
  const logger = pino(
    {
      base: null,
      level: debug ? 'debug' : 'info',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    { write: (line: string) => output.write(person ? `${forPerson(JSON.parse(line) as Line, style)}\n` : line) },
  );
  return {
    log: (level, message, context) => logger[level](logValue(context, clean), clean(message)),
    hide: (given) => {
      more = given;
    },
  };
}

function forPerson({ level, time, msg, ...context }: Line, style: Style): string {
  const paint = level === 'error' ? style.red : level === 'warn' ? style.yellow : level === 'debug' ? style.dim : style.cyan;
  const details = Object.entries(context).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return `${style.dim(time.slice(11, 19))} ${paint(level.padEnd(5))} ${sanitizeLine(msg)}${details.length === 0 ? '' : ` ${style.dim(sanitizeLine(details.join(' ')))}`}`;
}
