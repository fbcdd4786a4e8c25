import { type AssistantMessage, type Entry, entryIds, type FunctionResultMessage } from '#libs/contracts';
import { type FeedEvent, planCalls, previewOf } from '#libs/turn';

/** Codes of results that say that the target was not called. */
const DENIALS: ReadonlySet<unknown> = new Set(['policy_denied', 'hook_denied', 'approval_denied']);

/** Tells each entry of a turn once, and of an assistant entry that grows only what is new. */
export class Teller {
  private readonly told = new Map<string, { text: number; thinking: number; finished: boolean }>();
  private next = 0;
  private tells = 0;
  /** When what came before a call was over: the last message or result, as it was told, and as it was stored. */
  private before = { tell: 0, at: 0, stored: 0 };

  constructor(
    private readonly sessionId: string,
    private readonly turnId: string,
    private readonly now: () => number = Date.now,
  ) {}

  tell(window: readonly Entry[]): FeedEvent[] {
    const events: FeedEvent[] = [];
    this.tells += 1;
    // A growing entry is near the end. The window may have become shorter: then it begins at a later entry than before.
    const from = Math.min(this.next, Math.max(0, window.length - 64));
    for (let index = from; index < window.length; index += 1) {
      const entry = window[index];
      if (entry?.kind !== 'message' || entry.origin?.['turn_id'] !== this.turnId) continue;
      if (entry.message.role === 'assistant') events.push(...this.assistant(entry.id, entry.message, index === window.length - 1));
      if (entry.message.role === 'function_result') events.push(...this.result(entry.id, entry.message));
    }
    this.next = Math.max(0, window.length - 64);
    return events;
  }

  private assistant(entryId: string, message: AssistantMessage, isLast: boolean): FeedEvent[] {
    const step = stepOf(entryId, this.turnId);
    const base = { session_id: this.sessionId, turn_id: this.turnId, step };
    const seen = this.told.get(entryId);
    const state = seen ?? { text: 0, thinking: 0, finished: false };
    if (state.finished) return [];
    const events: FeedEvent[] = seen === undefined ? [{ type: 'step_started', ...base }] : [];
    this.told.set(entryId, state);
    for (const kind of ['thinking', 'text'] as const) {
      const whole = message.content.reduce((all, block) => (block.type === kind ? all + block.text : all), '');
      const delta = whole.slice(state[kind]);
      state[kind] = Math.max(state[kind], whole.length);
      if (delta !== '') events.push({ type: kind === 'text' ? 'text_delta' : 'thinking_delta', ...base, delta });
    }
    if (message.stop_reason === 'aborted' && isLast) return events; // still coming, as far as anybody can tell
    state.finished = true;
    this.since(message.timestamp);
    events.push({
      type: 'message_finished',
      ...base,
      stop_reason: message.stop_reason,
      provider: message.provider,
      model: message.model,
      usage: message.usage ?? null,
    });
    for (const call of planCalls(message, { refusalOf: () => null, isHooked: () => false })) {
      events.push({
        type: 'call_started',
        ...base,
        call_id: call.id,
        function_id: call.function_id,
        arguments: call.arguments,
        description: call.description,
      });
    }
    return events;
  }

  /** How long ago what came before was over, in ms. Where both are told at once, what is stored of them says so, else the clock. */
  private since(stored: number): number {
    const { before, tells: tell } = this;
    const at = this.now();
    this.before = { tell, at, stored };
    return Math.max(0, before.tell === tell ? stored - before.stored : at - before.at);
  }

  private result(entryId: string, message: FunctionResultMessage): FeedEvent[] {
    if (this.told.has(entryId)) return [];
    this.told.set(entryId, { text: 0, thinking: 0, finished: true });
    const { function_call_id: call_id, function_id, details } = message;
    const code = typeof details === 'object' && details !== null && !Array.isArray(details) ? details['error'] : undefined;
    const outcome = DENIALS.has(code) ? 'denied' : code === 'stopped' ? 'stopped' : message.is_error ? 'error' : 'ok';
    return [
      {
        type: 'call_finished',
        session_id: this.sessionId,
        turn_id: this.turnId,
        step: 0,
        call_id,
        function_id,
        outcome,
        duration_ms: this.since(message.timestamp),
        preview: previewOf(message),
      },
    ];
  }
}

const stepOf = (entryId: string, turnId: string): number => {
  const match = /^(\d+)_assistant$/.exec(entryId.slice(`e_${turnId}_`.length));
  return entryId === entryIds.assistant(turnId, Number(match?.[1] ?? 0)) ? Number(match?.[1]) : 0;
};
