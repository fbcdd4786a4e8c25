import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, type StatusReport } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import type { Cli } from '../cli/cli.js';
import { isOver } from '../turn/session.js';
import type { Keyboard } from './keyboard.js';
import { argumentsOf, decide, listPending, type PendingCall, SessionTree, type Settlement, settlementOf } from './pending.js';
import { askAbout } from './prompt.js';

/** How often calls that wait are looked for, in ms; a hold of this process is seen at once. */
const LOOK_MS = 400;

/** Who is told of calls that wait. */
export interface ApprovalView {
  /** A call waits; `asked`: a question about it follows on the terminal. */
  approvalPending(call: PendingCall, asked: boolean): void;
  approvalSettled(call: PendingCall, settlement: Settlement): void;
}

/**
 * While a turn is waited for: tells of each call of its session and of sub-agents that waits for a person, and asks about it
 * where somebody can answer. Everything is read from the harness, so it does not matter which process runs or settles what.
 */
export class Approver {
  private readonly waiting = new Map<string, PendingCall>();
  private readonly open: PendingCall[] = [];
  private readonly tree: SessionTree;
  private readonly ended = new AbortController();
  private readonly unsubscribe: () => void;
  /** A call was held here since the last look. */
  private held = false;
  private wake: () => void = () => undefined;
  /** The question on the terminal. */
  private asking: { key: string; settled: AbortController } | null = null;
  private readonly work: Promise<void>;

  constructor(
    private readonly cli: Cli,
    private readonly runtime: EmbeddedRuntime,
    private readonly view: ApprovalView,
    private readonly keyboard: Keyboard | null,
    private readonly sessionId: string,
  ) {
    this.tree = new SessionTree(runtime.bus, sessionId);
    this.unsubscribe = runtime.feed.subscribe((event) => {
      if (event.type !== 'call_pending') return;
      this.held = true;
      this.wake();
    });
    this.work = this.run();
  }

  /** Ends it, and gives the terminal back. */
  async close(): Promise<void> {
    this.ended.abort();
    this.asking?.settled.abort();
    this.unsubscribe();
    await this.work;
  }

  private async run(): Promise<void> {
    while (!this.ended.signal.aborted) {
      const pause = new AbortController();
      this.wake = () => pause.abort();
      try {
        if (!(await this.look())) return;
      } catch (error) {
        this.cli.log('warn', 'calls that wait could not be looked for', { error: errorMessage(error) });
      }
      await sleep(LOOK_MS, undefined, { signal: AbortSignal.any([pause.signal, this.ended.signal]) }).catch(() => undefined);
    }
  }

  /** False where nothing can wait for a person. */
  private async look(): Promise<boolean> {
    if (!(await this.mayWait())) return true;
    const all = await listPending(this.runtime.bus);
    if (all === null) return false;
    const now = new Map<string, PendingCall>();
    for (const call of all) if (await this.tree.has(call.session_id, call.session_metadata)) now.set(keyOf(call), call);
    if (this.ended.signal.aborted) return false;
    for (const [key, call] of this.waiting) if (!now.has(key)) await this.settled(key, call);
    for (const [key, call] of now) {
      if (this.waiting.has(key)) continue;
      this.waiting.set(key, call);
      this.view.approvalPending(call, this.keyboard !== null);
      if (this.keyboard !== null) this.open.push(call);
    }
    this.askNext();
    return true;
  }

  /** False while nothing of the tree can wait: its root runs, and so does every sub-agent that it waits for. */
  private async mayWait(): Promise<boolean> {
    const held = this.held || this.waiting.size > 0;
    this.held = false;
    if (held) return true;
    const report = await this.runtime.bus.trigger<StatusReport | null>({
      function_id: 'harness::status',
      payload: { session_id: this.sessionId },
    });
    return report?.status === 'awaiting_functions' || (report?.pending_function_calls.length ?? 0) > 0;
  }

  private async settled(key: string, call: PendingCall): Promise<void> {
    this.waiting.delete(key);
    if (this.asking?.key === key) this.asking.settled.abort();
    const settlement = await settlementOf(this.runtime.bus, call);
    this.view.approvalSettled(call, settlement);
    await this.takeUp(call.session_id);
  }

  /** Whoever settled the call may run nothing itself: then its turn goes on here. */
  private async takeUp(sessionId: string): Promise<void> {
    const report = await this.runtime.bus.trigger<StatusReport | null>({
      function_id: 'harness::status',
      payload: { session_id: sessionId },
    });
    if (isOver(report) || report?.status !== 'running') return;
    if ((await this.runtime.turnOwner(sessionId)) === 'none') await this.runtime.adopt(sessionId);
  }

  /** Asks about one call after the other. */
  private askNext(): void {
    if (this.asking !== null || this.keyboard === null) return;
    let call = this.open.shift();
    while (call !== undefined && !this.waiting.has(keyOf(call))) call = this.open.shift();
    if (call === undefined) return;
    const asking = { key: keyOf(call), settled: new AbortController() };
    this.asking = asking;
    void this.ask(this.keyboard, call, asking.settled.signal)
      .catch((error: unknown) => this.cli.log('error', 'the answer could not be carried out', { error: errorMessage(error) }))
      .finally(() => {
        this.asking = null;
        this.wake();
      });
  }

  private async ask(keyboard: Keyboard, call: PendingCall, signal: AbortSignal): Promise<void> {
    const answer = await askAbout(this.cli, keyboard, call, await argumentsOf(this.runtime.bus, call), signal);
    switch (answer.kind) {
      case 'allow':
        await decide(this.runtime.bus, call, { decision: 'allow', always: answer.always });
        return;
      case 'deny':
        await decide(this.runtime.bus, call, { decision: 'deny', reason: answer.reason });
        return;
      case 'none':
        return;
      default:
        throw new Error(`unknown answer ${JSON.stringify(answer satisfies never)}`);
    }
  }
}

const keyOf = (call: PendingCall): string => `${call.session_id} ${call.turn_id} ${call.function_call_id}`;
