import type { FeedEvent } from '#libs/turn';
import type { PendingCall, Settlement } from '../approval/pending.js';
import type { ChildChange } from '../turn/children.js';
import type { Output } from './output.js';
import { jsonLine } from './sanitize.js';
import type { AcceptedTurn, TurnView } from './turn-view.js';

type Delta = Extract<FeedEvent, { type: 'text_delta' | 'thinking_delta' }>;
const isDelta = (event: unknown): event is Delta => {
  const type = (event as FeedEvent | undefined)?.type;
  return type === 'text_delta' || type === 'thinking_delta';
};

/**
 * One JSON event per line on standard output, and nothing else. While the reader is behind, events wait here and neighbouring
 * deltas of a passage become one, so that a slow reader costs the text's own size and no more.
 */
export class JsonTurnView implements TurnView {
  private backlog: unknown[] = [];
  private draining = false;

  constructor(
    private readonly out: Output,
    readonly say: (text: string) => void,
  ) {}

  accepted({ session_id, turn_id, merged, choice }: AcceptedTurn): void {
    this.put({ type: 'session', session_id, turn_id, model: choice.model, provider: choice.provider, merged });
  }

  event(event: FeedEvent): void {
    this.put(event);
  }

  approvalPending(call: PendingCall): void {
    this.put({ type: 'approval_pending', ...call });
  }

  approvalSettled({ session_id, turn_id, function_call_id, function_id }: PendingCall, settlement: Settlement): void {
    this.put({ type: 'approval_settled', session_id, turn_id, function_call_id, function_id, ...settlement });
  }

  /** Only the beginning and the end: what a sub-agent says is not the answer. */
  child(change: ChildChange): void {
    const { parent, depth, session_id, turn_id } = change.child;
    if (change.kind === 'started') this.put({ type: 'child_started', session_id, turn_id, depth, parent });
    if (change.kind === 'finished') this.put({ ...change.event, type: 'child_finished', depth, parent });
  }

  finished(): void {}

  /** Resolves when all events are handed to the stream. */
  async drained(): Promise<void> {
    while (this.backlog.length > 0 && !this.out.closed) {
      await this.out.flushed();
      this.flush();
    }
  }

  private put(event: unknown): void {
    if (this.out.closed) {
      this.backlog = [];
      return;
    }
    if (this.backlog.length === 0 && !this.out.isBehind) {
      this.out.write(`${jsonLine(event)}\n`);
      return;
    }
    const last = this.backlog.at(-1);
    if (isDelta(event) && isDelta(last) && last.type === event.type && last.step === event.step) {
      this.backlog[this.backlog.length - 1] = { ...last, delta: last.delta + event.delta };
    } else {
      this.backlog.push(event);
    }
    if (this.draining) return;
    this.draining = true;
    void this.out.flushed().then(() => {
      this.draining = false;
      this.flush();
    });
  }

  private flush(): void {
    while (this.backlog.length > 0 && !this.out.closed && !this.out.isBehind) this.out.write(`${jsonLine(this.backlog.shift())}\n`);
    if (this.backlog.length === 0 || this.draining || this.out.closed) return;
    this.draining = true;
    void this.out.flushed().then(() => {
      this.draining = false;
      this.flush();
    });
  }
}
