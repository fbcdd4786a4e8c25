import { type MessageItem, type StatusReport, textOf } from '#libs/contracts';
import type { Cli } from '../cli/cli.js';
import { StreamSanitizer, sanitizeLine } from '../render/sanitize.js';
import { paintStatus } from '../render/status.js';
import { TranscriptText } from '../render/transcript.js';
import { isOver } from '../turn/session.js';
import type { SessionChange } from './session-follow.js';

/** Shows what happens in a session to a person: the conversation on standard output, the state of its turns on standard error. */
export class WatchText {
  private readonly transcript: TranscriptText;
  private growing: { id: string; shown: number; text: StreamSanitizer } | null = null;

  constructor(private readonly cli: Cli) {
    this.transcript = new TranscriptText(cli.out, cli.columns);
  }

  show(change: SessionChange): void {
    switch (change.kind) {
      case 'growing':
        this.grow(change.item);
        return;
      case 'entry':
        this.entry(change.item);
        return;
      case 'turn':
        this.turn(change.turn);
        return;
      default:
        throw new Error(`unknown change ${JSON.stringify(change satisfies never)}`);
    }
  }

  private grow({ entry_id, message }: MessageItem): void {
    if (message?.role !== 'assistant') return;
    const text = textOf(message.content);
    if (text === '' || (this.growing !== null && this.growing.id !== entry_id)) return;
    if (this.growing === null) {
      this.cli.screen.waiting(null);
      this.growing = { id: entry_id, shown: 0, text: new StreamSanitizer() };
      this.cli.print('', this.transcript.opening(message));
      this.cli.stdout.write('  ');
    }
    this.write(text.slice(this.growing.shown));
    this.growing.shown = text.length;
  }

  private entry(item: MessageItem): void {
    this.cli.screen.waiting(null);
    const { message } = item;
    if (this.growing === null || message?.role !== 'assistant') {
      this.cli.print(...this.transcript.entry(item));
      return;
    }
    this.write(textOf(message.content).slice(this.growing.shown));
    this.cli.stdout.write(`${indented(this.growing.text.end())}\n`);
    this.growing = null;
    const calls = this.transcript.calls(message);
    if (calls.length > 0) this.cli.print(...calls);
  }

  private write(text: string): void {
    this.cli.stdout.write(indented(this.growing?.text.push(text) ?? ''));
  }

  private turn(turn: StatusReport): void {
    if (this.growing !== null) return; // the answer is on the screen, and says more
    const { err, screen } = this.cli;
    const pending = turn.pending_function_calls.map(sanitizeLine).join(', ');
    const why = turn.result_error == null ? '' : err.dim(` · ${sanitizeLine(turn.result_error)}`);
    screen.note(`${paintStatus(turn.status, err)}${pending === '' ? '' : err.dim(` · waits for ${pending}`)}${why}`);
    screen.waiting(isOver(turn) ? 'waiting for the next message' : 'working');
  }
}

const indented = (text: string): string => text.replaceAll('\n', '\n  ');
