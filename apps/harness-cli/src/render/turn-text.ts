import type { FeedEvent } from '#libs/turn';
import type { PendingCall, Settlement } from '../approval/pending.js';
import type { ChildChange } from '../turn/children.js';
import type { TurnFinished } from '../turn/watch.js';
import { callText } from './call-text.js';
import { ChildrenText } from './children-text.js';
import { count, cut, dollars, duration, plural, width } from './format.js';
import { jsonBlock, StreamSanitizer, sanitize, sanitizeLine } from './sanitize.js';
import type { Screen } from './screen.js';
import type { Style } from './style.js';
import type { AcceptedTurn, TurnView } from './turn-view.js';

type Passage = 'none' | 'text' | 'thinking' | 'calls' | 'note';
type CallStarted = Extract<FeedEvent, { type: 'call_started' }>;
type CallFinished = Extract<FeedEvent, { type: 'call_finished' }>;

/** Shows a turn to a person: the answer on standard output, all else on standard error. */
export class TextTurnView implements TurnView {
  private passage: Passage = 'none';
  private readonly text = new StreamSanitizer();
  private readonly thinking = new StreamSanitizer();
  private readonly running = new Map<string, CallStarted>();
  private lastCall: string | null = null;
  private answered = false;
  private readonly children: ChildrenText;

  constructor(
    private readonly screen: Screen,
    private readonly style: Style,
    /** How this program is called, for commands that are shown. */
    private readonly command: string,
  ) {
    this.children = new ChildrenText(screen, style);
  }

  /** The turn is being prepared. */
  opening(): void {
    this.screen.waiting('starting');
  }

  accepted({ session_id, merged, choice, deniesAll }: AcceptedTurn): void {
    const { bold, dim, yellow } = this.style;
    this.screen.note(
      `${bold(sanitizeLine(choice.model))} ${dim(`from ${sanitizeLine(choice.provider)} · session ${sanitizeLine(session_id)}`)}`,
      ...(choice.why === null ? [] : [dim(sanitizeLine(choice.why))]),
      ...(deniesAll && !merged ? [dim('no --allow: every call that the model asks for is denied')] : []),
    );
    if (merged)
      this.screen.note(yellow('the message joined the turn that is under way in this session, which keeps the options that it began with'));
    this.passage = 'note';
    this.screen.waiting('waiting for the turn to start');
  }

  event(event: FeedEvent): void {
    switch (event.type) {
      case 'turn_started':
        return;
      case 'step_started':
        this.screen.waiting(`waiting for the model`);
        return;
      case 'text_delta':
        this.enter('text');
        this.answered = true;
        this.screen.answer(this.text.push(event.delta));
        return;
      case 'thinking_delta':
        this.enter('thinking');
        this.screen.noteInline(this.style.dim(this.thinking.push(event.delta)));
        return;
      case 'message_finished':
        this.leave();
        if (event.stop_reason === 'length') this.screen.note(this.style.yellow('the model stopped at its output limit'));
        this.screen.waiting('working');
        return;
      case 'call_started':
        this.callStarted(event);
        return;
      case 'call_finished':
        this.callFinished(event);
        return;
      case 'call_pending':
        this.enter('calls');
        this.screen.note(
          `${this.style.cyan('●')} ${sanitizeLine(event.function_id)}  ${this.style.yellow(`waits to be settled (call ${sanitizeLine(event.call_id)})`)}`,
        );
        this.running.delete(event.call_id);
        this.lastCall = null;
        this.screen.waiting('waiting for a pending call');
        return;
      case 'notice':
        this.enter('note');
        this.screen.note(
          ...sanitize(event.text)
            .split('\n')
            .map((line) => this.style.yellow(line)),
        );
        return;
      case 'turn_finished':
        this.leave();
        return;
      default:
        throw new Error(`unknown event ${String((event satisfies never as FeedEvent).type)}`);
    }
  }

  approvalPending(call: PendingCall, asked: boolean): void {
    if (asked) return;
    this.enter('calls');
    const { bold, yellow, dim } = this.style;
    const ids = `${sanitizeLine(call.session_id)} ${sanitizeLine(call.function_call_id)}`;
    this.screen.note(
      `${yellow('approval needed:')} ${callText(call.function_id, call.arguments_excerpt ?? null, this.screen.columns - 20)}`,
      `  ${bold(`${this.command} approve ${ids}`)}${dim(`   or: ${this.command} deny ${ids} --reason "..."`)}`,
    );
    this.screen.waiting('waiting for an approval');
  }

  approvalSettled(call: PendingCall, { outcome, reason }: Settlement): void {
    if (outcome === 'going on') return;
    this.enter('calls');
    const why = reason === undefined ? '' : ` ${this.style.dim('·')} ${sanitizeLine(reason)}`;
    this.screen.note(`  └ ${this.style.yellow(`✗ ${outcome}`)} ${sanitizeLine(call.function_id)}${why}`);
    this.lastCall = null;
  }

  child(change: ChildChange): void {
    this.enter('calls');
    this.children.change(change);
    if (change.kind === 'event') return;
    this.lastCall = null;
    if (change.kind === 'finished') this.running.delete(change.child.parent.function_call_id);
    this.screen.waiting(change.kind === 'started' ? 'waiting for a sub-agent' : 'working');
  }

  say(text: string): void {
    this.enter('note');
    this.screen.note(this.style.yellow(text));
  }

  finished(event: TurnFinished): void {
    this.leave();
    this.screen.waiting(null);
    this.screen.closeAnswer();
    if (!this.answered && event.status === 'completed' && event.result !== null && event.result !== '') {
      this.screen.answer(typeof event.result === 'string' ? sanitize(event.result) : jsonBlock(event.result));
      this.screen.closeAnswer();
    }
    this.screen.gap();
    const why = whyEnded(event);
    if (why !== null) this.screen.note(...failureLines(why, event, this.style));
    this.screen.note(summary(event, this.style));
  }

  private callStarted(event: CallStarted): void {
    this.enter('calls');
    this.running.set(event.call_id, event);
    this.lastCall = event.call_id;
    const call = callText(event.function_id, event.arguments, this.screen.columns - 2);
    const room = this.screen.columns - width(call) - 4;
    const description = event.description === null ? '' : cut(sanitizeLine(event.description), Math.min(room, 120));
    this.screen.note(`${this.style.cyan('●')} ${call}${description === '' || room < 12 ? '' : `  ${this.style.dim(description)}`}`);
    this.screen.waiting(`running ${sanitizeLine(event.function_id)}`);
  }

  private callFinished(event: CallFinished): void {
    this.enter('calls');
    this.running.delete(event.call_id);
    const named = this.lastCall === event.call_id ? '' : `${sanitizeLine(event.function_id)} `;
    this.lastCall = null;
    const outcome = OUTCOME[event.outcome](this.style);
    const head = `  └ ${outcome} ${named}${this.style.dim(duration(event.duration_ms))}`;
    const used = 4 + width(OUTCOME_TEXT[event.outcome]) + 1 + width(named) + width(duration(event.duration_ms)) + 3;
    const preview = cut(sanitizeLine(event.preview), Math.min(this.screen.columns, 160) - used);
    this.screen.note(preview === '' ? head : `${head} ${this.style.dim('·')} ${this.style.dim(preview)}`);
    const next = [...this.running.values()].at(-1);
    this.screen.waiting(next === undefined ? 'working' : `running ${sanitizeLine(next.function_id)}`);
  }

  /** Begins another passage; between two of them is an empty line. */
  private enter(passage: Passage): void {
    if (this.passage === passage) return;
    this.leave();
    if (passage === 'text' || passage === 'thinking') this.screen.waiting(null);
    this.screen.gap();
    this.passage = passage;
  }

  private leave(): void {
    if (this.passage === 'text') this.screen.answer(this.text.end());
    if (this.passage === 'thinking') this.screen.noteInline(this.style.dim(this.thinking.end()));
    this.screen.closeAnswer();
    this.passage = 'none';
  }
}

const OUTCOME_TEXT = { ok: '✓', error: '✗', denied: '✗ denied', stopped: '✗ stopped' } as const;
const OUTCOME: { readonly [outcome in CallFinished['outcome']]: (style: Style) => string } = {
  ok: (style) => style.green(OUTCOME_TEXT.ok),
  error: (style) => style.red(OUTCOME_TEXT.error),
  denied: (style) => style.yellow(OUTCOME_TEXT.denied),
  stopped: (style) => style.yellow(OUTCOME_TEXT.stopped),
};

/** Why the turn ended so, with the code of a failure. */
function failureLines(why: string, { status, reason }: TurnFinished, style: Style): string[] {
  const lines = sanitize(why)
    .split('\n')
    .map((line) => style.red(line));
  if (status !== 'failed') return lines;
  const [first = '', ...rest] = lines;
  const code = reason === null || why === reason ? [] : [style.dim(`(${sanitizeLine(reason)})`)];
  return [
    `${style.red(style.bold('error:'))} ${[first, ...(rest.length === 0 ? code : [])].join(' ')}`,
    ...rest,
    ...(rest.length === 0 ? [] : code),
  ];
}

/** Why a turn ended otherwise than well, or null. */
export function whyEnded({ status, reason, result_error }: TurnFinished): string | null {
  if (status === 'completed') return result_error;
  if (status === 'cancelled') return null;
  return result_error ?? reason ?? 'the turn failed, and nothing says why';
}

/** `completed · 3 steps · 2 calls · 1.2k in / 345 out tokens · $0.0012 · 1.3 s · session s_…`. */
export function summary(event: TurnFinished, style: Style): string {
  const { totals, status } = event;
  const color = status === 'completed' ? style.green : status === 'failed' ? style.red : style.yellow;
  const limit = status === 'completed' && event.reason !== null && event.reason !== 'end' ? ` (${sanitizeLine(event.reason)})` : '';
  const input = totals.input_tokens + totals.cache_read_tokens + totals.cache_write_tokens;
  const cached = totals.cache_read_tokens > 0 ? ` (${count(totals.cache_read_tokens)} cached)` : '';
  const parts = [
    plural(event.steps, 'step'),
    plural(event.calls, 'call'),
    `${count(input)} in${cached} / ${count(totals.output_tokens)} out tokens`,
    ...(totals.cost_usd === null ? [] : [dollars(totals.cost_usd)]),
    duration(event.duration_ms),
    `session ${sanitizeLine(event.session_id)}`,
  ];
  return `${style.bold(color(status))}${limit}${style.dim(parts.map((part) => ` · ${part}`).join(''))}`;
}
