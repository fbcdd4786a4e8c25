import { setTimeout as sleep } from 'node:timers/promises';
import { errorMessage, type StatusReport } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import type { FeedEvent } from '#libs/turn';
import { type TurnFinished, TurnWatch } from './watch.js';

/** A turn of a sub-agent. `depth` is 1 for one that the watched turn has started itself. */
export interface Child {
  session_id: string;
  turn_id: string;
  depth: number;
  parent: { session_id: string; turn_id: string; function_call_id: string };
}

/** What happens to a sub-agent. */
export type ChildChange =
  | { kind: 'started'; child: Child }
  | { kind: 'event'; child: Child; event: FeedEvent }
  | { kind: 'finished'; child: Child; event: TurnFinished };

/** The function that starts a sub-agent. */
const SPAWN = 'harness::spawn';
/** How often new sub-agents are looked for while there are any, in ms. */
const LOOK_MS = 300;
/** How long the turn's end waits for what is still to be told of sub-agents, in ms. */
const SETTLE_MS = 1_500;
/** How many events of sub-agents that are not known yet are kept. */
const KEPT = 2_000;

interface Parent {
  session_id: string;
  turn_id: string;
  depth: number;
}

/**
 * Finds the sub-agents of a turn, and theirs, and watches each to its end, whichever process runs it. Costs nothing until
 * there is a sign of one.
 */
export class Children {
  private readonly parents = new Map<string, Parent>();
  private readonly watches = new Map<string, { watch: TurnWatch; child: Child; over: Promise<void> }>();
  /** What sub-agents did before they were found; no text, which nobody is shown. */
  private early: FeedEvent[] = [];
  private readonly ended = new AbortController();
  private readonly unsubscribe: () => void;
  private looking = false;
  private wake: () => void = () => undefined;
  private readonly root: Parent;

  constructor(
    private readonly runtime: EmbeddedRuntime,
    root: { session_id: string; turn_id: string },
    private readonly tell: (change: ChildChange) => void,
    private readonly report: (message: string) => void,
  ) {
    this.root = { session_id: root.session_id, turn_id: root.turn_id, depth: 0 };
    this.parents.set(root.turn_id, this.root);
    this.unsubscribe = runtime.feed.subscribe((event) => {
      if (event.session_id === root.session_id || this.watches.has(event.turn_id) || isDelta(event)) return;
      if (this.early.length < KEPT) this.early.push(event);
      this.look();
    });
  }

  /** To be told of the events of the turn: a sub-agent that another process runs has no other sign. */
  seen(event: FeedEvent): void {
    if (event.type === 'call_started' && event.function_id === SPAWN) this.look();
  }

  /** To be awaited at the end of the turn: resolves when all that its sub-agents did is told, or after a moment. */
  async settle(): Promise<void> {
    if (!this.looking) return;
    const told = this.settled(this.root).catch((error: unknown) => this.report(errorMessage(error)));
    await Promise.race([told, sleep(SETTLE_MS, undefined, { signal: this.ended.signal, ref: false }).catch(() => undefined)]);
  }

  /** Ends all watching. */
  close(): void {
    this.ended.abort();
    this.unsubscribe();
    for (const { watch } of this.watches.values()) watch.close();
  }

  private look(): void {
    if (this.ended.signal.aborted) return;
    this.wake();
    if (this.looking) return;
    this.looking = true;
    this.search().catch((error: unknown) => this.report(errorMessage(error)));
  }

  private async search(): Promise<void> {
    while (!this.ended.signal.aborted) {
      const pause = new AbortController();
      this.wake = () => pause.abort();
      for (const parent of [...this.parents.values()]) await this.childrenOf(parent);
      await sleep(LOOK_MS, undefined, { signal: AbortSignal.any([pause.signal, this.ended.signal]) }).catch(() => undefined);
    }
  }

  private async childrenOf(parent: Parent): Promise<void> {
    const { session_id, turn_id } = parent;
    const report = await this.runtime.bus.trigger<StatusReport | null>({ function_id: 'harness::status', payload: { session_id } });
    if (report?.turn_id !== turn_id) return;
    for (const child of report.children) {
      if (this.watches.has(child.turn_id) || this.ended.signal.aborted) continue;
      this.watch({
        session_id: child.session_id,
        turn_id: child.turn_id,
        depth: parent.depth + 1,
        parent: { session_id, turn_id, function_call_id: child.function_call_id },
      });
    }
  }

  private watch(child: Child): void {
    const mine = this.early.filter((event) => event.turn_id === child.turn_id);
    this.early = this.early.filter((event) => event.turn_id !== child.turn_id);
    const watch = new TurnWatch(this.runtime, undefined, mine);
    this.tell({ kind: 'started', child });
    this.parents.set(child.turn_id, child);
    this.watches.set(child.turn_id, { watch, child, over: this.toItsEnd(watch, child) });
  }

  private async toItsEnd(watch: TurnWatch, child: Child): Promise<void> {
    try {
      const event = await watch.run({ sessionId: child.session_id, turnId: child.turn_id, merged: false }, (next) => {
        if (!this.ended.signal.aborted) this.tell({ kind: 'event', child, event: next });
      });
      this.parents.delete(child.turn_id);
      await this.settled(child);
      if (!this.ended.signal.aborted) this.tell({ kind: 'finished', child, event });
    } catch (error) {
      if (!this.ended.signal.aborted) this.report(errorMessage(error));
    }
  }

  /** Resolves when everything is told of the sub-agents of a turn that has ended. */
  private async settled(parent: Parent): Promise<void> {
    await this.childrenOf(parent);
    await Promise.all([...this.watches.values()].filter(({ child }) => child.parent.turn_id === parent.turn_id).map(({ over }) => over));
  }
}

const isDelta = ({ type }: FeedEvent): boolean => type === 'text_delta' || type === 'thinking_delta';
