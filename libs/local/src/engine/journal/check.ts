import { HarnessError } from '#libs/contracts';
import type { KeyDocument, TurnDocument } from './documents.js';

type Fields = { readonly [name: string]: unknown };

/** The kinds of effects that a document may hold. */
const EFFECTS: ReadonlySet<unknown> = new Set<TurnDocument['effects'][number]['kind']>([
  'ensure-session',
  'append-entry',
  'put-entry',
  'set-status',
  'remember-key',
  'emit',
  'put-document',
]);
const STATUSES: ReadonlySet<unknown> = new Set(['running', 'awaiting_functions', 'completed', 'cancelled', 'failed']);
const STATES: ReadonlySet<unknown> = new Set(['ready', 'triggered', 'pending', 'done']);

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isListOf = (value: unknown, is: (item: Fields) => boolean): boolean =>
  Array.isArray(value) && value.every((item) => isFields(item) && is(item));

/** The first field of what is stored that no document of this session can have; null when it may be one. */
export function documentFault(value: unknown, sessionId: string): string | null {
  if (!isFields(value)) return 'it is no object';
  const { session_id, revision, record, job, parked, effects } = value;
  if (session_id !== sessionId) return 'session_id';
  if (!isCount(revision)) return 'revision';
  if (record !== null && !isRecord(record, sessionId)) return 'record';
  if (job !== null && !(isFields(job) && isCount(job['step']) && isCount(job['not_before']))) return 'job';
  if (!isListOf(parked, ({ entry_id, message, options }) => isText(entry_id) && isFields(message) && isFields(options))) return 'parked';
  if (!isListOf(effects, ({ kind }) => EFFECTS.has(kind))) return 'effects';
  return null;
}

function isRecord(value: unknown, sessionId: string): boolean {
  if (!isFields(value) || value['format'] !== 1 || value['session_id'] !== sessionId) return false;
  const { turn_id, version, status, step, calls, children, options } = value;
  const isCall = ({ id, function_id, state }: Fields): boolean => isText(id) && isText(function_id) && STATES.has(state);
  return (
    isText(turn_id) &&
    isCount(version) &&
    STATUSES.has(status) &&
    isCount(step) &&
    isListOf(calls, isCall) &&
    isListOf(children, () => true) &&
    isFields(options)
  );
}

export const isKeyDocument = (value: unknown): value is KeyDocument =>
  isFields(value) && isText(value['key']) && isFields(value['answer']) && typeof value['expires_at'] === 'number';

/** What another program has written where a document was. */
export const damaged = (scope: string, key: string, fault: string): HarnessError =>
  new HarnessError(
    'harness/damaged_record',
    `what the state of the engine has in the scope ${scope} under ${key} is nothing that a harness wrote there (${fault}); ` +
      `state::delete of it gives up what it held`,
  );
