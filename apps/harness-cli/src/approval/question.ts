import type { JsonValue } from '#libs/contracts';
import { width } from '../render/format.js';
import { jsonBlock, sanitizeLine } from '../render/sanitize.js';
import type { Style } from '../render/style.js';
import type { PendingCall } from './pending.js';

/** Lines of arguments that are shown at once, and at least. */
const PAGE = 20;

/** Also what has no width, or turns the direction of what follows, is shown and does nothing. */
const FORMAT = /\p{Cf}/gu;
const strict = (text: string): string => sanitizeLine(text).replace(FORMAT, inert);
const inert = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`;

/** `text` in pieces of at most `room` columns, wherever that cuts. */
export function pieces(text: string, room: number): string[] {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const next = width(segment);
    if (used + next > room && line !== '') {
      lines.push(line);
      line = '';
      used = 0;
    }
    line += segment;
    used += next;
  }
  return [...lines, line];
}

/**
 * What a person is asked about a call. Every line that holds something of a model begins with the bar and fits on one line of
 * the terminal, so that nothing of it can look like the question, which alone stands at the margin.
 */
export class Question {
  private readonly lines: string[];
  private shown = 0;

  constructor(
    private readonly call: PendingCall,
    args: JsonValue,
    private readonly columns: number,
    private readonly style: Style,
  ) {
    this.lines = jsonBlock(args)
      .split('\n')
      .flatMap((line) => pieces(line.replace(FORMAT, inert), Math.max(20, columns - 4)));
  }

  /** The lines to begin with. */
  opening(): string[] {
    const { function_id, function_call_id, session_id, depth = 0 } = this.call;
    const where = `call ${strict(function_call_id)} · session ${strict(session_id)}${depth > 0 ? ` · sub-agent, ${depth} deep` : ''}`;
    return [
      '',
      ...this.barred(`approve ${strict(function_id)} ?`, (line) => this.style.bold(line)),
      ...this.barred(where, (line) => this.style.dim(line)),
      ...this.more(),
    ];
  }

  /** The next lines of the arguments. */
  more(): string[] {
    const next = this.lines.slice(this.shown, this.shown + PAGE);
    this.shown += next.length;
    const left = this.lines.length - this.shown;
    return [
      ...next.map((line) => `${this.bar()}  ${line}`),
      ...(left > 0 ? [`${this.bar()}  ${this.style.dim(`… ${left} more lines: v shows them`)}`] : []),
    ];
  }

  get hasMore(): boolean {
    return this.shown < this.lines.length;
  }

  /** The question itself, in one line. */
  choices(): string {
    const key = (letter: string, rest: string): string => `${this.style.bold(letter)} ${rest}`;
    return `${[
      key('y', 'yes'),
      key('a', 'always in this session'),
      key('n', 'no'),
      key('r', 'no, and why'),
      ...(this.hasMore ? [key('v', 'more')] : []),
    ].join(' · ')} > `;
  }

  private bar(): string {
    return this.style.yellow('┃');
  }

  private barred(text: string, paint: (line: string) => string): string[] {
    return pieces(text, Math.max(20, this.columns - 3)).map((line) => `${this.bar()} ${paint(line)}`);
  }
}
