import type { FeedEvent } from '#libs/turn';
import type { ApprovalView } from '../approval/approver.js';
import type { ChildChange } from '../turn/children.js';
import type { ModelChoice } from '../turn/choose-model.js';
import type { TurnFinished } from '../turn/watch.js';

/** What is known of a turn once it is accepted. */
export interface AcceptedTurn {
  session_id: string;
  turn_id: string;
  merged: boolean;
  choice: ModelChoice;
  /** The policy allows nothing. */
  deniesAll: boolean;
}

/** Shows a turn as it runs. */
export interface TurnView extends ApprovalView {
  accepted(turn: AcceptedTurn): void;
  event(event: FeedEvent): void;
  /** Something that the CLI itself says, as that it is stopping. */
  say(text: string): void;
  /** What a sub-agent does. */
  child(change: ChildChange): void;
  finished(event: TurnFinished): void;
}
