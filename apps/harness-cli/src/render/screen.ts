import { cut, duration } from './format.js';
import type { Output } from './output.js';
import type { Style } from './style.js';
import { wrap } from './wrap.js';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 90;
/** A wait that is shorter than this shows no spinner. */
const QUIET_MS = 250;

/**
 * The answer goes to standard output, everything else to standard error. Where both are the same terminal this keeps them from
 * running into each other, and takes the spinner away before anything is written.
 */
export class Screen {
  private readonly shared: boolean;
  private answerOpen = false;
  private midLine = false;
  private notesOpen = false;
  private answered = false;
  private blank = true;
  private label: string | null = null;
  private since = 0;
  private frame = 0;
  /** Lines of the last drawing, all but the last of them ended; 0 when there is none. */
  private drawn = 0;
  private lines: readonly string[] = [];
  private timer: NodeJS.Timeout | null = null;
  /** What is to be written once a question on the terminal is answered. */
  private kept: (() => void)[] | null = null;

  constructor(
    private readonly stdout: Output,
    private readonly stderr: Output,
    private readonly style: Style,
    private readonly animate: boolean,
    private readonly now: () => number,
  ) {
    this.shared = stdout.stream.isTTY === true && stderr.stream.isTTY === true;
  }

  /** Columns that a note may take. */
  get columns(): number {
    return this.stderr.stream.isTTY === true ? this.stderr.columns : Number.POSITIVE_INFINITY;
  }

  /** Keeps the terminal for a question: what is written meanwhile comes after it, when the returned function is called. */
  pause(): () => void {
    this.clear();
    this.closeAnswer();
    this.closeNotes();
    this.kept = [];
    return () => {
      const kept = this.kept ?? [];
      this.kept = null;
      this.blank = false;
      for (const write of kept) write();
    };
  }

  /** True when the terminal is kept for a question; `write` then comes later. */
  private isKept(write: () => void): boolean {
    this.kept?.push(write);
    return this.kept !== null;
  }

  /** A piece of the answer. */
  answer(text: string): void {
    if (text === '' || this.isKept(() => this.answer(text))) return;
    this.clear();
    this.closeNotes();
    if (!this.answerOpen && this.answered && !this.shared) this.stdout.write('\n');
    this.stdout.write(text);
    this.answered = true;
    this.answerOpen = true;
    if (this.shared) this.blank = false;
    this.midLine = !text.endsWith('\n');
  }

  /** Ends a passage of the answer: what follows begins on a new line. */
  closeAnswer(): void {
    if (this.isKept(() => this.closeAnswer()) || !this.answerOpen) return;
    if (this.midLine) this.stdout.write('\n');
    this.answerOpen = false;
    this.midLine = false;
  }

  /** A piece of a note that goes on, on the same line. */
  noteInline(text: string): void {
    if (text === '' || this.isKept(() => this.noteInline(text))) return;
    this.clear();
    this.closeAnswer();
    this.stderr.write(text);
    this.notesOpen = true;
    this.blank = false;
  }

  /** A note on lines of its own; on a terminal, a long line is broken between words. */
  note(...lines: string[]): void {
    if (this.isKept(() => this.note(...lines))) return;
    this.clear();
    this.closeAnswer();
    this.closeNotes();
    for (const line of lines) this.stderr.write(`${wrap(line, this.columns).join('\n')}\n`);
    this.blank = lines.at(-1) === '';
  }

  /** An empty line between two passages, unless there is one. */
  gap(): void {
    if (this.isKept(() => this.gap())) return;
    this.clear();
    this.closeAnswer();
    this.closeNotes();
    if (!this.blank) this.stderr.write('\n');
    this.blank = true;
  }

  /** Shows that something is waited for, with the time that it takes; null takes it away. */
  waiting(label: string | null): void {
    if (this.isKept(() => this.waiting(label)) || label === this.label) return;
    this.clear();
    this.since = this.now();
    this.label = label;
    if (!this.animate) return;
    if (label === null && this.lines.length === 0) this.stopTimer();
    else this.timer ??= setInterval(() => this.draw(), FRAME_MS).unref();
  }

  /** True where lines can be drawn anew. */
  get isLive(): boolean {
    return this.animate;
  }

  /** Lines that stand above the spinner and are drawn anew; each must fit into one line of the terminal. */
  live(lines: readonly string[]): void {
    if (this.isKept(() => this.live(lines))) return;
    this.clear();
    this.lines = lines;
    if (this.animate && lines.length > 0) this.timer ??= setInterval(() => this.draw(), FRAME_MS).unref();
  }

  /** Takes the spinner away and ends the open line. */
  close(): void {
    this.lines = [];
    this.waiting(null);
    this.stopTimer();
    this.closeAnswer();
    this.closeNotes();
  }

  private closeNotes(): void {
    if (this.notesOpen) this.stderr.write('\n');
    this.notesOpen = false;
  }

  private stopTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  private draw(): void {
    const waited = this.now() - this.since;
    const midLine = this.notesOpen || (this.shared && this.midLine);
    if (this.label === null || waited < QUIET_MS || midLine || this.kept !== null) return;
    this.frame = (this.frame + 1) % FRAMES.length;
    const text = cut(`${this.label} ${duration(Math.floor(waited / 100) * 100)}`, this.stderr.columns - 3);
    this.clear();
    const lines = [...this.lines, `${this.style.cyan(FRAMES[this.frame] ?? '')} ${this.style.dim(text)}`];
    this.stderr.write(`\r\u001b[K${lines.join('\n')}`);
    this.drawn = lines.length;
  }

  private clear(): void {
    if (this.drawn === 1) this.stderr.write('\r\u001b[K');
    if (this.drawn > 1) this.stderr.write(`\r\u001b[${this.drawn - 1}A\u001b[J`);
    this.drawn = 0;
  }
}
