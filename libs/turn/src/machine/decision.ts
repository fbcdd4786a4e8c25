import type { AssistantMessage, ContentBlock, ErrorKind, JsonObject, JsonValue, Usage } from '#libs/contracts';
import type { CompactionData } from '../context/compaction.js';
import type { Write } from '../ports/journal.js';
import type { ParkedMessage, TurnRecord } from '../record/record.js';
import type { PlannedCall } from './calls.js';

/** The captured result of a call. */
export interface CallResult {
  content: ContentBlock[];
  details: JsonValue;
  is_error: boolean;
}

/** What a turn hands over at its end: the value of its output contract, or why there is none. */
export interface Deliverable {
  result: JsonValue;
  result_error: string | null;
}

/** Why a generation or a step failed. `code` is stable; `retryable` when another try may help. */
export interface TurnFailure {
  code: string;
  message: string;
  retryable: boolean;
  kind?: ErrorKind;
  provider?: string;
  model?: string;
}

/** Limits that a decision needs, from the settings in force. */
export interface Limits {
  step_max_retries: number;
  step_backoff_ms: number;
  max_transient_resumes: number;
  max_validation_retries: number;
}

/** What the pre-trigger hooks say of a call. `by` is the hook function that decided. */
export type Screening =
  | { kind: 'run'; arguments?: JsonValue; annotations?: JsonObject }
  | { kind: 'deny'; by: string; reason: string; annotations?: JsonObject }
  | { kind: 'hold'; by: string; arguments: JsonValue; expires_at: number; annotations?: JsonObject };

/** How a pending call is settled; `had_failure` tells that something has failed below it, whatever its result says. */
export type Answer = { kind: 'deliver'; result: CallResult; had_failure?: boolean } | { kind: 'execute' };

/** What happened to a turn. `now` is ms since the epoch. */
export type TurnInput =
  /** A queued step was taken up, with the messages that were parked and the plan of its stored generation, if any; `waiting` as below. */
  | {
      type: 'begin';
      now: number;
      turn_id: string;
      step: number;
      parked: readonly ParkedMessage[];
      plan: readonly PlannedCall[];
      sketched: boolean;
      waiting: boolean;
      limits: Limits;
    }
  /** The model answered. `waiting` tells of a user message that this generation has not seen. */
  | {
      type: 'generated';
      now: number;
      message: AssistantMessage;
      plan: readonly PlannedCall[];
      waiting: boolean;
      deliverable: Deliverable;
      limits: Limits;
      annotations?: JsonObject;
      /** What else the generation took, beside the message's own usage. */
      spent?: Usage;
    }
  /** The older part of the conversation was summed up, since the request did not fit: stored before the model is asked. */
  | { type: 'compacted'; now: number; data: CompactionData; usage: Usage | null }
  /** There is nothing that a model could reply to: the conversation ends with its own message. `last` is that message when it is of this turn. */
  | { type: 'nothing-to-reply'; now: number; last: AssistantMessage | null; deliverable: Deliverable; waiting: boolean; limits: Limits }
  | { type: 'generation-failed'; now: number; partial: AssistantMessage | null; failure: TurnFailure; limits: Limits }
  /** A call's target answered, failed or was given up. */
  | {
      type: 'call-returned';
      now: number;
      call_id: string;
      result: CallResult;
      annotations?: JsonObject;
      plan: readonly PlannedCall[];
      waiting: boolean;
      limits: Limits;
    }
  /** The pre-trigger hooks of a call have answered. */
  | {
      type: 'call-screened';
      now: number;
      call_id: string;
      verdict: Screening;
      plan: readonly PlannedCall[];
      waiting: boolean;
      limits: Limits;
    }
  /** A spawn is ready to be made: `writes` seed the child in the commit that makes the call pending. */
  | {
      type: 'call-spawned';
      now: number;
      call_id: string;
      child: { session_id: string; turn_id: string };
      writes: readonly Write[];
      expires_at: number;
      plan: readonly PlannedCall[];
      waiting: boolean;
      limits: Limits;
    }
  /** Somebody settles a pending call: with its result, or by letting a held call go on. */
  | { type: 'resolved'; now: number; call_id: string; answer: Answer }
  /** Time has passed: pending calls that are due time out. */
  | { type: 'expired'; now: number }
  /** A hook refused the turn or the generation, before any spend. */
  | { type: 'vetoed'; now: number; failure: TurnFailure }
  /** The step itself failed: a dependency, or a fault of ours. */
  | { type: 'step-failed'; now: number; failure: TurnFailure; limits: Limits }
  /** Somebody asked to stop the turn. */
  | { type: 'stop-requested' }
  /** The stop is carried out: with what the open stream had brought, and what the running call left. */
  | { type: 'stopped'; now: number; partial: AssistantMessage | null; returned: { call_id: string; result: CallResult } | null };

/** What to do once the writes are committed. */
export type Next =
  | { do: 'generate' }
  /** Ask the pre-trigger hooks of a call, after `after` when one of them has released it. */
  | { do: 'screen'; call: PlannedCall; after: string | null }
  /** Prepare the child of a spawn call. */
  | { do: 'spawn'; call: PlannedCall }
  | { do: 'invoke'; call: PlannedCall }
  | { do: 'rest'; outcome: 'skipped' | 'queued' | 'parked' | 'ended' };

/** The answer of the machine: the record as it will be, the writes of one commit, and what to do after it. */
export interface Decision {
  record: TurnRecord;
  writes: Write[];
  next: Next;
}
