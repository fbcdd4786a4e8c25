import type { FeedEvent } from '#libs/turn';
import type { Child, ChildChange } from '../turn/children.js';
import type { TurnFinished } from '../turn/watch.js';
import { callText } from './call-text.js';
import { cut, duration, plural, width } from './format.js';
import { sanitizeLine } from './sanitize.js';
import type { Screen } from './screen.js';
import { paintStatus } from './status.js';
import type { Style } from './style.js';

interface Shown {
  child: Child;
  doing: string;
  step: number;
}

/**
 * Sub-agents as blocks below the call that started them, each as far in as it is deep. On a terminal a block is one line that
 * changes and at its end becomes its summary; elsewhere each thing that happens is a line.
 */
export class ChildrenText {
  private readonly shown = new Map<string, Shown>();

  constructor(
    private readonly screen: Screen,
    private readonly style: Style,
  ) {}

  change(change: ChildChange): void {
    const { child } = change;
    switch (change.kind) {
      case 'started':
        this.shown.set(child.turn_id, { child, doing: 'starting', step: 0 });
        if (!this.screen.isLive) this.screen.note(`${margin(child)}${this.style.cyan('⤷')} ${nameOf(child)}`);
        this.draw();
        return;
      case 'event':
        this.event(child, change.event);
        return;
      case 'finished':
        this.shown.delete(child.turn_id);
        this.draw();
        this.screen.note(`${margin(child)}${this.summary(child, change.event)}`);
        return;
      default:
        throw new Error(`unknown change ${JSON.stringify(change satisfies never)}`);
    }
  }

  private event(child: Child, event: FeedEvent): void {
    const shown = this.shown.get(child.turn_id);
    if (shown === undefined) return;
    switch (event.type) {
      case 'step_started':
        shown.step = event.step;
        shown.doing = 'waiting for the model';
        break;
      case 'text_delta':
        if (shown.doing === 'answering') return;
        shown.doing = 'answering';
        break;
      case 'thinking_delta':
        if (shown.doing === 'thinking') return;
        shown.doing = 'thinking';
        break;
      case 'call_started':
        shown.doing = callText(event.function_id, event.arguments, 100);
        this.line(
          child,
          `  ${this.style.cyan('●')} ${callText(event.function_id, event.arguments, this.screen.columns - 4 * child.depth)}`,
        );
        break;
      case 'call_pending':
        shown.doing = `${sanitizeLine(event.function_id)} waits to be settled`;
        this.line(child, `  ${this.style.cyan('●')} ${shown.doing}`);
        break;
      case 'call_finished': {
        shown.doing = 'working';
        const mark = event.outcome === 'ok' ? this.style.green('✓') : this.style.red(`✗ ${event.outcome}`);
        this.line(child, `    └ ${mark} ${sanitizeLine(event.function_id)} ${this.style.dim(duration(event.duration_ms))}`);
        break;
      }
      case 'notice':
        this.line(child, `  ${this.style.yellow(sanitizeLine(event.text))}`);
        return;
      case 'turn_started':
      case 'message_finished':
      case 'turn_finished':
        return;
      default:
        throw new Error(`unknown event ${JSON.stringify(event satisfies never)}`);
    }
    this.draw();
  }

  /** A line of a block, where blocks are not drawn anew. */
  private line(child: Child, text: string): void {
    if (!this.screen.isLive) this.screen.note(`${margin(child)}${text}`);
  }

  /** The lines of the blocks that are open, each below its parent's. */
  private draw(): void {
    if (!this.screen.isLive) return;
    const all = [...this.shown.values()];
    const below = (parent: string): Shown[] =>
      all.filter((one) => one.child.parent.turn_id === parent).flatMap((one) => [one, ...below(one.child.turn_id)]);
    const roots = all.filter((one) => !this.shown.has(one.child.parent.turn_id));
    const lines = roots.flatMap((one) => [one, ...below(one.child.turn_id)]);
    this.screen.live(
      lines.map(({ child, doing, step }) => {
        const text = cut(`⤷ ${nameOf(child)} · step ${step + 1} · ${doing}`, this.screen.columns - 2 * child.depth - 1);
        return `${margin(child)}${this.style.dim(text)}`;
      }),
    );
  }

  private summary(child: Child, event: TurnFinished): string {
    const why = event.status === 'completed' ? '' : ` · ${sanitizeLine(event.result_error ?? event.reason ?? '')}`;
    const facts = ` · ${plural(event.steps, 'step')} · ${plural(event.calls, 'call')} · ${duration(event.duration_ms)}${why}`;
    const room = Math.min(this.screen.columns, 200) - width(`${margin(child)}⤷ ${nameOf(child)} ${event.status}`) - 1;
    return `${this.style.cyan('⤷')} ${nameOf(child)} ${paintStatus(event.status, this.style)}${this.style.dim(cut(facts, room))}`;
  }
}

const margin = ({ depth }: Child): string => '  '.repeat(depth);
const nameOf = ({ session_id }: Child): string => `sub-agent ${sanitizeLine(session_id)}`;
