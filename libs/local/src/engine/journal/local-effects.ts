import type { TurnEvent, Write } from '#libs/turn';
import { GATE } from '../../approval/inbox.js';
import type { ApprovalInbox } from '../../approval/index.js';
import type { StoreCommits } from '../../turns/commits.js';
import type { TurnDocument } from './documents.js';

/** What a commit leads to in the data folder of this process: events to deliver, and the inbox of calls that wait for a person. */
export class LocalEffects {
  /** Sessions with calls in the inbox, as far as this process knows; one that it does not know may have some. */
  private readonly held = new Map<string, boolean>();

  constructor(
    private readonly commits: StoreCommits,
    private readonly approvals: ApprovalInbox,
  ) {}

  /** Stores what the effects of a document tell. Doing it twice delivers twice. */
  async apply({ session_id, record, effects }: TurnDocument): Promise<void> {
    const events = effects.flatMap((effect): TurnEvent[] => (effect.kind === 'emit' ? [effect.event] : []));
    const writes = effects.filter((effect) => effect.kind === 'append-entry') as Write[];
    const holds = record?.calls.some(({ state, held_by }) => state === 'pending' && held_by === GATE) === true;
    const follows = record !== null && (holds || this.held.get(session_id) !== false);
    if (events.length === 0 && !follows) return;
    await this.commits.run((notes) => {
      notes.events.push(...events);
      if (follows) notes.events.push(...this.approvals.follow(record, writes, true));
    }, 'turn-effects');
    if (holds || record === null || record.status === 'running') this.held.set(session_id, holds);
    else this.held.delete(session_id);
  }
}
