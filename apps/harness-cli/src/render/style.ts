/** What a stream's terminal can show. */
export interface Style {
  readonly color: boolean;
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

interface Terminal {
  isTTY?: boolean;
}

/** True when colours are wanted: FORCE_COLOR and NO_COLOR first, then whether `stream` is a terminal that can. */
export function wantsColor(stream: Terminal, env: NodeJS.ProcessEnv): boolean {
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return false;
  return stream.isTTY === true;
}

/** True when the cursor may be moved, as a spinner does. */
export const canMoveCursor = (stream: Terminal, env: NodeJS.ProcessEnv): boolean => stream.isTTY === true && env['TERM'] !== 'dumb';

/** The styles of a stream; they leave text as it is when `color` is false. */
export function styleOf(color: boolean): Style {
  const sgr =
    (on: number, off: number) =>
    (text: string): string =>
      color && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  return { color, bold: sgr(1, 22), dim: sgr(2, 22), red: sgr(31, 39), green: sgr(32, 39), yellow: sgr(33, 39), cyan: sgr(36, 39) };
}
