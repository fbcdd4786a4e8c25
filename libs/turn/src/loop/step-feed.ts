import { type AssistantMessage, textOf } from '#libs/contracts';
import type { PlannedCall } from '../machine/calls.js';
import type { CallResult, Decision, TurnInput } from '../machine/decision.js';
import { cut } from '../model/text.js';
import type { Feed, FeedEvent } from '../ports/feed.js';
import { isTerminal, type TurnRecord } from '../record/record.js';
import { traceOf } from '../tracing/ids.js';

/** Longest preview of a result, in characters. */
const PREVIEW = 400;

/** Tells the feed what a step does. */
export class StepFeed {
  private readonly ids: { session_id: string; turn_id: string };
  private readonly started = new Set<string>();

  constructor(
    private readonly feed: Feed,
    record: TurnRecord,
  ) {
    this.ids = { session_id: record.session_id, turn_id: record.turn_id };
  }

  stepStarted(step: number): void {
    this.feed.publish({ type: 'step_started', ...this.ids, step });
  }

  delta(step: number, kind: 'text' | 'thinking', delta: string): void {
    this.feed.publish({ type: kind === 'text' ? 'text_delta' : 'thinking_delta', ...this.ids, step, delta });
  }

  message(step: number, message: AssistantMessage): void {
    const { stop_reason, provider, model, usage } = message;
    this.feed.publish({ type: 'message_finished', ...this.ids, step, stop_reason, provider, model, usage: usage ?? null });
  }

  callStarted(step: number, call: PlannedCall): void {
    const { id, function_id, description } = call;
    this.started.add(id);
    this.feed.publish({ type: 'call_started', ...this.ids, step, call_id: id, function_id, arguments: call.arguments, description });
  }

  callFinished(step: number, call: PlannedCall, result: CallResult, durationMs: number): void {
    this.finished(step, call.id, call.function_id, result.is_error ? 'error' : 'ok', durationMs, previewOf(result));
  }

  callPending(step: number, call: PlannedCall): void {
    this.feed.publish({ type: 'call_pending', ...this.ids, step, call_id: call.id, function_id: call.function_id });
  }

  notice(text: string): void {
    this.feed.publish({ type: 'notice', ...this.ids, text });
  }

  /**
   * What a committed decision did by itself: sub-agents that began, refused and stopped calls, an answer that is asked for
   * again, and the end of the turn.
   */
  decided(decision: Decision, input: TurnInput): void {
    const { record } = decision;
    const plan = 'plan' in input ? input.plan : [];
    const tellStart = (callId: string): void => {
      const call = plan.find((planned) => planned.id === callId);
      if (call !== undefined && !this.started.has(callId)) this.callStarted(record.step, call);
    };
    if (input.type === 'call-spawned') tellStart(input.call_id);
    for (const write of decision.writes) {
      if (write.kind !== 'append-entry' || !('message' in write.entry) || write.entry.message.role !== 'function_result') continue;
      const message = write.entry.message;
      if (input.type === 'call-returned' && input.call_id === message.function_call_id) continue;
      const code =
        typeof message.details === 'object' && message.details !== null && !Array.isArray(message.details)
          ? message.details['error']
          : undefined;
      tellStart(message.function_call_id);
      const stopped = code === 'stopped' || code === 'outcome_unknown';
      const outcome = stopped ? 'stopped' : message.is_error ? 'denied' : 'ok';
      this.finished(record.step, message.function_call_id, message.function_id, outcome, 0, previewOf(message));
    }
    if (isTerminal(record.status)) this.feed.publish(turnFinished(record));
    else if (input.type === 'compacted')
      this.notice(
        `The older part of the conversation is summed up: ${input.data.initial_token_count} tokens become ${input.data.assembled_token_count}.`,
      );
    else if (input.type === 'generation-failed') this.notice(`The answer broke off and is asked for again: ${input.failure.message}`);
  }

  private finished(
    step: number,
    call_id: string,
    function_id: string,
    outcome: 'ok' | 'error' | 'denied' | 'stopped',
    duration_ms: number,
    preview: string,
  ): void {
    this.feed.publish({ type: 'call_finished', ...this.ids, step, call_id, function_id, outcome, duration_ms, preview });
  }
}

/** The last event of a turn, from its terminal record. */
export function turnFinished(record: TurnRecord): FeedEvent {
  const { session_id, turn_id, status, reason, result, result_error, totals } = record;
  return {
    type: 'turn_finished',
    session_id,
    turn_id,
    trace_id: traceOf(record).trace_id,
    status,
    reason,
    result,
    result_error,
    totals,
    steps: record.step + 1,
    calls: record.call_count,
    duration_ms: (record.ended_at ?? record.started_at) - record.started_at,
  };
}

/** The first text of a result, cut short. */
export const previewOf = (result: Pick<CallResult, 'content'>): string => {
  const text = textOf(result.content.slice(0, 3)).slice(0, PREVIEW * 4);
  return cut(text.trim() === '' && result.content.length > 0 ? `[${result.content[0]?.type ?? 'nothing'}]` : text, PREVIEW);
};
