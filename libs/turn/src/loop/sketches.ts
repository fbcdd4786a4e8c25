import { type AssistantMessage, entryIds, errorMessage } from '#libs/contracts';
import type { TurnRecord } from '../record/record.js';
import type { LoopPorts } from './ports.js';

/** Stores what a stream has brought so far, without waiting for it. The fence keeps a lost step from writing over a newer one. */
export class Sketches {
  private failed = false;

  /** `tell` gets words for a person, once, when a sketch cannot be stored. */
  constructor(
    private readonly ports: LoopPorts,
    private readonly tell: (text: string) => void,
  ) {}

  store({ session_id, turn_id, step, version }: TurnRecord, partial: AssistantMessage): void {
    const { journal, clock } = this.ports;
    const entry = {
      entry_id: entryIds.assistant(turn_id, step),
      timestamp: clock.now(),
      origin: { turn_id },
      message: partial,
    };
    journal
      .commit(
        [
          { kind: 'check-record', session_id, version },
          { kind: 'put-entry', session_id, entry },
        ],
        'sketch',
      )
      .catch((error: unknown) => {
        if (!this.failed) this.tell(`The answer cannot be stored while it comes: ${errorMessage(error)}`);
        this.failed = true;
      });
  }
}
