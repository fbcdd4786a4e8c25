import { HarnessError } from '#libs/contracts';
import { isLive, type Write } from '#libs/turn';
import { type Effect, emptyDocument, type TurnDocument } from './documents.js';

/** What has no part in a document: then a commit writes none. */
export const isSketch = ({ kind }: Write): boolean => kind === 'check-record' || kind === 'put-entry';

/** True while a document has to be looked at when the process starts anew. */
export const isOpen = ({ record, parked, effects }: TurnDocument): boolean => isLive(record) || parked.length > 0 || effects.length > 0;

/** The session that a write is about, if it is about its document. */
export function sessionOf(write: Write): string[] {
  switch (write.kind) {
    case 'save-record':
      return [write.record.session_id];
    case 'enqueue-step':
      return [write.payload.session_id];
    case 'remember-key':
      return [];
    case 'emit':
      return [];
    default:
      return [write.session_id];
  }
}

/** Checks what a write demands of what is stored. */
export function holds(write: Write, documents: ReadonlyMap<string, TurnDocument>): boolean {
  const of = (sessionId: string): TurnDocument => documents.get(sessionId) ?? emptyDocument(sessionId);
  switch (write.kind) {
    case 'save-record': {
      const { record, parked } = of(write.record.session_id);
      return (record?.version ?? null) === write.expectedVersion && (write.requireNoneParked !== true || parked.length === 0);
    }
    case 'check-record':
      return of(write.session_id).record?.version === write.version;
    case 'park-message': {
      const { record } = of(write.session_id);
      if (record?.turn_id !== write.turn_id) return false;
      return record.status === 'running' || (write.pending === true && record.status === 'awaiting_functions');
    }
    default:
      return true;
  }
}

/** The documents as the writes leave them; the first one carries all that is done elsewhere. */
export function documentsAfter(before: ReadonlyMap<string, TurnDocument>, writes: readonly Write[]): TurnDocument[] {
  const after = new Map(
    [...before].map(([id, document]) => [id, { ...document, revision: document.revision + 1, effects: [] as Effect[] }]),
  );
  const changed = new Set<string>();
  const effects: Effect[] = [];
  const change = (sessionId: string, how: (document: TurnDocument) => void): void => {
    const document = after.get(sessionId);
    if (document === undefined)
      throw new HarnessError('harness/internal', `a commit writes to session ${sessionId}, which it does not name`);
    how(document);
    changed.add(sessionId);
  };
  for (const write of writes) {
    switch (write.kind) {
      case 'save-record':
        change(write.record.session_id, (document) => {
          document.record = write.record;
        });
        break;
      case 'park-message':
        change(write.session_id, (document) => {
          if (!document.parked.some(({ entry_id }) => entry_id === write.parked.entry_id))
            document.parked = [...document.parked, write.parked];
        });
        break;
      case 'take-messages':
        change(write.session_id, (document) => {
          document.parked = document.parked.filter(({ entry_id }) => !write.entry_ids.includes(entry_id));
        });
        break;
      case 'enqueue-step':
        change(write.payload.session_id, (document) => {
          document.job = { step: write.payload.step, not_before: write.notBefore ?? 0 };
        });
        break;
      case 'settle-step':
        change(write.session_id, (document) => {
          document.job = null;
        });
        break;
      case 'check-record':
        break;
      default:
        effects.push(write);
    }
  }
  // The record that a commit replaces is its fence, so its document comes first; a child is made by the commit of its parent.
  const order = [...changed].sort((a, b) => Number(before.get(a)?.record == null) - Number(before.get(b)?.record == null));
  const first = order[0] ?? [...after.keys()][0];
  return [...new Set([...(first === undefined ? [] : [first]), ...order])].map((id, index) => {
    const document = after.get(id) as TurnDocument;
    return index === 0 ? { ...document, effects } : document;
  });
}
