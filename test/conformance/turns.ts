import type { AgentMessage } from '#libs/contracts';
import type { NewEntry, ParkedMessage, TurnOptions, TurnRecord, Write } from '#libs/turn';
import type { StoreProcess } from './store.js';

export const OPTIONS: TurnOptions = {
  model: 'm',
  provider: null,
  functions: { allow: ['a::*'], deny: [], expose: 'agent_trigger' },
  max_turns: 16,
  output: { type: 'text' },
  mode: null,
  system_prompt: null,
  system_prompt_strategy: 'enrich',
  thinking_level: null,
  metadata: { tenant: 7 },
  max_children: 8,
};

/** The record of a turn that has just begun. */
export const recordOf = (session_id: string, over: Partial<TurnRecord> = {}): TurnRecord => ({
  format: 1,
  session_id,
  turn_id: `t_${session_id}`,
  version: 1,
  claims: 0,
  status: 'running',
  step: 0,
  phase: 'generate',
  turn_count: 0,
  calls: [],
  call_count: 0,
  options: OPTIONS,
  depth: 0,
  parent: null,
  children: [],
  abort_requested: false,
  failures: 0,
  nudges: 0,
  submission: null,
  result: null,
  result_error: null,
  reason: null,
  totals: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost_usd: null },
  started_at: 1,
  ended_at: null,
  ...over,
});

export const userMessage = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });

export const entryOf = (entry_id: string, text = entry_id): NewEntry => ({ entry_id, timestamp: 1, message: userMessage(text) });

export const parkedOf = (entry_id: string): ParkedMessage => ({ entry_id, message: userMessage(entry_id), options: OPTIONS, timestamp: 1 });

export const ensure = (session_id: string): Write => ({ kind: 'ensure-session', session_id, timestamp: 1 });

export const save = (record: TurnRecord, expectedVersion: number | null): Write => ({ kind: 'save-record', record, expectedVersion });

export const enqueue = ({ session_id, turn_id, step }: TurnRecord, notBefore?: number): Write => ({
  kind: 'enqueue-step',
  payload: { session_id, turn_id, step },
  ...(notBefore === undefined ? {} : { notBefore }),
});

/** The writes that begin a turn and queue its first step. */
export const beginning = (record: TurnRecord): Write[] => [ensure(record.session_id), save(record, null), enqueue(record)];

/** Commits, and fails unless it is taken. */
export async function committed({ journal }: Pick<StoreProcess, 'journal'>, ...writes: Write[]): Promise<void> {
  const result = await journal.commit(writes, 'conformance');
  if (result !== 'committed') throw new Error(`the commit of ${writes.map(({ kind }) => kind).join(', ')} is a ${result}`);
}

/** Changes the stored record of a session by what `over` says, in one commit with more writes. */
export async function changed(
  process: StoreProcess,
  sessionId: string,
  over: Partial<TurnRecord>,
  ...writes: Write[]
): Promise<TurnRecord> {
  const before = await process.journal.load(sessionId);
  if (before === null) throw new Error(`session ${sessionId} has no turn`);
  const record = { ...before, ...over, version: before.version + 1 };
  await committed(process, save(record, before.version), ...writes);
  return record;
}

/** Ends the turn of a session, and with it its queued step. */
export const finish = (process: StoreProcess, session_id: string): Promise<TurnRecord> =>
  changed(process, session_id, { status: 'completed', ended_at: 2 }, { kind: 'settle-step', session_id });

/** Ends the step of a session and queues the next one. */
export async function advance(process: StoreProcess, sessionId: string): Promise<void> {
  const before = await process.journal.load(sessionId);
  if (before === null) throw new Error(`session ${sessionId} has no turn`);
  const record = { ...before, step: before.step + 1, version: before.version + 1 };
  await committed(process, save(record, before.version), enqueue(record));
}

const PATIENCE_MS = 20_000;

/** Waits until something holds that nobody tells of. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; !(await holds()); ) {
    if (Date.now() > end) throw new Error(`it did not come: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
