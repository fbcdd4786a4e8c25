/** Told what the SDK has to say. */
export type SdkLog = (level: 'debug' | 'warn' | 'error', message: string) => void;

const MARK = /^\[(?:iii|OTel)\] ?/;
let sink: SdkLog | undefined;

/**
 * Takes what iii-sdk prints to the console, which it offers no other way to take: it would end up among the answers on
 * standard output. What others print goes where it went.
 */
export function captureSdkLog(log: SdkLog): void {
  const isFirst = sink === undefined;
  sink = log;
  if (!isFirst) return;
  for (const method of ['debug', 'log', 'info', 'warn', 'error'] as const) {
    const print = console[method].bind(console);
    const level = method === 'log' || method === 'info' ? 'debug' : method;
    console[method] = (...parts: unknown[]): void => {
      if (typeof parts[0] === 'string' && MARK.test(parts[0])) sink?.(level, parts.map(textOf).join(' ').trim());
      else print(...parts);
    };
  }
}

const textOf = (part: unknown): string => (part instanceof Error ? part.message : String(part)).replace(MARK, '');
