import type {
  AgentMessage,
  ChildRef,
  ExposeMode,
  JsonObject,
  JsonValue,
  Mode,
  OutputContract,
  ParentRef,
  SystemPromptStrategy,
  ThinkingLevel,
  TurnStatus,
} from '#libs/contracts';
import type { TurnTotals } from '../ports/feed.js';

/** Options of a turn, frozen when it starts. */
export interface TurnOptions {
  model: string;
  provider: string | null;
  /** Null: every call is denied. */
  functions: { allow: string[]; deny: string[]; expose: ExposeMode } | null;
  max_turns: number;
  output: OutputContract;
  mode: Mode | null;
  system_prompt: string | null;
  system_prompt_strategy: SystemPromptStrategy;
  thinking_level: ThinkingLevel | null;
  metadata: JsonValue;
  max_children: number;
}

/**
 * What the record says of one call of the current step.
 * `ready` not begun; `triggered` its target may have been called; `pending` waits for a resolve; `done` its result is stored.
 */
export type CallState = 'ready' | 'triggered' | 'pending' | 'done';
export interface CallCheckpoint {
  id: string;
  /** The real target, unwrapped from `agent_trigger`. */
  function_id: string;
  state: CallState;
  /** Arguments as hooks have changed them; absent while they are those of the assistant entry. */
  arguments?: JsonValue;
  /** The hook function that holds or held the call; a release goes on after it. */
  held_by?: string;
  /** Its pre-trigger hooks have let it pass. */
  screened?: true;
  /** What hooks noted of it, for the origin of its result entry. */
  annotations?: JsonObject;
  /** The child turn whose end answers the call. */
  child?: { session_id: string; turn_id: string };
  /** When a pending call times out, ms since the epoch. */
  expires_at?: number;
  /** When a call that was pending began to wait, ms since the epoch. */
  since?: number;
}

/** Where a running step is: before its generation, or with its assistant entry stored and calls to run. */
export type Phase = 'generate' | 'calls';

/** The one durable record of a session's latest turn; it holds the calls of the current step only. */
export interface TurnRecord {
  format: 1;
  session_id: string;
  turn_id: string;
  /** Grows with each save; a save names the version that it replaces (the fence). */
  version: number;
  /** Grows when another process takes the step over: an executor that sees it grow has lost the step. */
  claims: number;
  status: TurnStatus;
  /** The step that is queued or running, from 0. */
  step: number;
  phase: Phase;
  /** Generations so far. */
  turn_count: number;
  calls: CallCheckpoint[];
  /** Calls of all steps so far. */
  call_count: number;
  options: TurnOptions;
  depth: number;
  parent: ParentRef | null;
  children: ChildRef[];
  /** Set by stop; whoever runs the step ends it as cancelled. */
  abort_requested: boolean;
  /** Failed tries of the current step. */
  failures: number;
  /** Validation nudges so far. */
  nudges: number;
  /** The value that the model has handed in by `submit_result`, in this step. */
  submission: { value: JsonValue } | null;
  result: JsonValue;
  result_error: string | null;
  reason: string | null;
  totals: TurnTotals;
  started_at: number;
  ended_at: number | null;
  /** The W3C trace context in which the turn was begun; absent for one that has a trace of its own. */
  traceparent?: string;
  /** A call, a try of a step or a sub-agent's has failed so far. */
  had_failure?: true;
}

export const isTerminal = (status: TurnStatus): boolean => status === 'completed' || status === 'cancelled' || status === 'failed';
/** The record of a turn that has not ended. */
export type LiveRecord = TurnRecord & { status: 'running' | 'awaiting_functions' };
export const isLive = (record: TurnRecord | null): record is LiveRecord => record !== null && !isTerminal(record.status);

/** A message that waits for the running turn (steering), with what a turn of its own would need. */
export interface ParkedMessage {
  entry_id: string;
  message: AgentMessage;
  options: TurnOptions;
  timestamp: number;
}
