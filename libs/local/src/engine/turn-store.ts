import { errorCode, HarnessError, type JsonObject } from '#libs/contracts';
import type { Bus, SdkBus } from '#libs/iii';
import type { HarnessSettings, Journal, LoopPorts, StepQueue, Transcript } from '#libs/turn';
import type { LiveConfiguration } from '../configuration/index.js';
import type { Store } from '../runtime/store.js';
import { registered } from './directory.js';
import { CopiedDocuments } from './journal/copied-documents.js';
import { BusEntries } from './journal/entries.js';
import { insistent } from './journal/insist.js';
import { BusJournal } from './journal/journal.js';
import { LocalEffects } from './journal/local-effects.js';
import { closeLost } from './journal/lost.js';
import { SqliteDocuments } from './journal/sqlite-documents.js';
import { type Saved, StateDocuments } from './journal/state-documents.js';
import { DocumentStepQueue } from './journal/step-queue.js';
import { BusTranscript } from './journal/transcript.js';
import type { Log } from './reach.js';
import type { Standing } from './standing.js';
import type { StepJobs } from './step-jobs.js';
import type { EngineStepQueue } from './step-queue.js';

/** How often the state that is built into the engine is saved when its configuration does not say, in ms. */
const BUILT_IN_SAVE_MS = 5_000;

/** What the entry of the built-in state says of where it is. */
interface BuiltInState {
  adapter?: { name?: string; config?: { store_method?: string; save_interval_ms?: number } };
  save_interval_ms?: number;
}

/** Where the records of turns are: in the data folder of the worker, or in the state of the engine. */
export type StoreKind = 'sqlite' | 'engine';

/** Where turns are kept: their records, their conversation, their queued steps. */
export interface TurnStore {
  journal: Journal;
  transcript: Transcript;
  queue: StepQueue & {
    readonly load: { running: number; waiting: number; longest_wait_ms: number };
    /** Undefined while steps are handed over in memory. */
    jobs: StepJobs | undefined;
  };
  /** What is kept outlives, in words for a person. */
  guarantee: string;
  /** Writes again what the engine has lost; does nothing where it keeps nothing. */
  restore(): Promise<void>;
  /** Turns that wait for calls, where the store of this worker does not know of them. */
  parkedTurns?: () => number;
  /** Drops what is kept of a session that is gone, where that does not go with it. */
  forget?(sessionId: string): Promise<void>;
  /** To be called before steps run: where an engine may lose what it has answered for, what it has lost is found then. */
  prepare?(ports: LoopPorts): void;
  /** Ends the waiting for a store that is away. */
  close(): void;
}

/** Reads `HARNESS_STORE`. Throws `harness/invalid_setting`. */
export function storeKindOf(text: string | undefined): StoreKind {
  if (text === undefined || text === '' || text === 'sqlite') return 'sqlite';
  if (text === 'engine') return text;
  throw new HarnessError('harness/invalid_setting', `HARNESS_STORE must be "sqlite" or "engine", not ${JSON.stringify(text)}`);
}

export interface TurnStoreOptions {
  kind: StoreKind;
  /** This worker keeps the sessions, too. */
  keepsSessions: boolean;
  configuration: LiveConfiguration;
  standing: Standing;
  log: Log;
}

/**
 * Chooses where turns are kept. When both records and conversations are this worker's own, a commit is one transaction of its database;
 * otherwise it is one document, and conversations are written by `session::*`.
 */
export async function turnStoreOf(bus: SdkBus, store: Store, options: TurnStoreOptions): Promise<TurnStore> {
  const { kind, keepsSessions, standing } = options;
  if (kind === 'sqlite' && keepsSessions) {
    const { journal, transcript, queue } = store;
    return {
      journal,
      transcript,
      queue: queue as EngineStepQueue,
      guarantee:
        'turns and sessions are on the disk of this worker before they are answered for: they outlive its crashes, and those of the engine',
      restore: () => Promise.resolve(),
      close: () => undefined,
    };
  }
  const settings = (): HarnessSettings => options.configuration.current.harness;
  const timeoutMs = (): number => settings().session_timeout_ms;
  const report = (message: string, context: { [key: string]: unknown }): void => options.log('warn', message, context);
  const closed = new AbortController();
  const state = kind === 'engine' ? new StateDocuments(bus, timeoutMs, await savedBy(bus)) : null;
  const onDisk = new SqliteDocuments(store.db, store.writer);
  const documents = state === null ? onDisk : new CopiedDocuments(state, onDisk);
  const traits = { updatesEnding: keepsSessions || (await takesEnding(bus)) };
  const entries = new BusEntries(bus, traits, timeoutMs, closed.signal, report);
  const local = new LocalEffects(store.commits, store.approvals);
  const journal = new BusJournal({ documents, entries, local, report, mayWrite: () => standing.proven(), signal: closed.signal });
  const asked = insistent(bus, closed.signal);
  const queue = new DocumentStepQueue(journal, { concurrency: () => settings().concurrency, report });
  return {
    journal,
    transcript: new BusTranscript(asked, timeoutMs),
    queue,
    guarantee: documents.guarantee,
    restore: async () => {
      if (state !== null) await journal.restore(state);
    },
    prepare: (ports) => {
      if (state !== null) queue.audit = (steps) => closeLost({ ports, bus: asked, log: options.log }, steps);
    },
    parkedTurns: () => journal.parkedTurns,
    forget: (sessionId) => journal.forget(sessionId),
    close: () => closed.abort(),
  };
}

/** True where `session::update-message` takes how a message ended, which the contract does not have. */
async function takesEnding(bus: Bus): Promise<boolean> {
  const id = 'session::update-message';
  const schema = (await registered(bus, [id])).get(id)?.request_schema as { properties?: JsonObject } | undefined;
  return schema?.properties?.['ending'] !== undefined;
}

/** How often the state that is built into the engine is saved. */
async function savedBy(bus: Bus): Promise<Saved> {
  const entry = await bus
    .trigger<{ value?: BuiltInState }>({ function_id: 'configuration::get', payload: { id: 'iii-state' } })
    .catch((error: unknown) => {
      if (errorCode(error) === 'NOT_FOUND') return null;
      throw error;
    });
  const { adapter, save_interval_ms } = entry?.value ?? {};
  if (adapter?.name !== 'kv') return 'unknown';
  if (adapter.config?.store_method === 'in_memory') return 'never';
  if (adapter.config?.store_method !== 'file_based') return 'unknown';
  return save_interval_ms ?? adapter.config.save_interval_ms ?? BUILT_IN_SAVE_MS;
}
