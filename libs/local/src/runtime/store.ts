import type { Journal, Transcript } from '#libs/turn';
import { ApprovalInbox } from '../approval/inbox.js';
import { SqliteGuards } from '../guards/guards.js';
import { ProcessRegistry } from '../processes/registry.js';
import { SessionRepository } from '../sessions/repository.js';
import { SqliteTranscript } from '../sessions/transcript.js';
import { openDatabase, type SqliteConnection, SqliteWriter } from '../sqlite/index.js';
import { SpanRecorder } from '../traces/recorder.js';
import { SpanTable } from '../traces/span-table.js';
import { StoreCommits } from '../turns/commits.js';
import { EventDelivery } from '../turns/delivery.js';
import { SqliteJournal } from '../turns/journal.js';
import { SqliteStepQueue } from '../turns/queue.js';

/** The parts of the embedded store, over one database. */
export interface Store {
  db: SqliteConnection;
  writer: SqliteWriter;
  processes: ProcessRegistry;
  repository: SessionRepository;
  transcript: SqliteTranscript & Transcript;
  delivery: EventDelivery;
  commits: StoreCommits;
  queue: SqliteStepQueue;
  journal: SqliteJournal & Journal;
  approvals: ApprovalInbox;
  guards: SqliteGuards;
  /** Finished spans, as they are stored and as they come. */
  spans: SpanTable;
  recorder: SpanRecorder;
}

export interface StoreOptions {
  dataDir: string;
  durability: 'power' | 'process';
  concurrency: () => number;
  /** Traces that are kept; none when absent. */
  traces?: () => number;
  /** See `OpenRuntimeOptions`. */
  otlp?: boolean;
  /** See `OpenRuntimeOptions`. */
  leaseMs?: number | undefined;
  redisUrl?: string | undefined;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

/** Opens the store of a data folder. Throws as `openDatabase` does. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const shared = options.redisUrl === undefined ? null : await sharedQueues(options.redisUrl);
  const db = await openDatabase({ dataDir: options.dataDir, durability: options.durability });
  const writer = new SqliteWriter(db);
  const processes = new ProcessRegistry(db, options.leaseMs);
  const repository = new SessionRepository(db);
  const transcript = new SqliteTranscript(db, repository);
  const delivery = new EventDelivery(db, processes.owner, options.report);
  const commits = new StoreCommits(writer, transcript, processes, delivery);
  const { concurrency, report, dataDir } = options;
  const queue =
    shared?.(db, writer, processes, { concurrency, report, dataDir }) ??
    new SqliteStepQueue(db, writer, processes, { concurrency, report });
  const approvals = new ApprovalInbox(db, repository);
  const journal = new SqliteJournal(db, commits, repository, queue, approvals);
  const guards = new SqliteGuards(db, writer, processes, options.report);
  const spans = new SpanTable(db);
  const otlp = options.otlp === true ? (await import('../traces/otlp.js')).otlpExport(options.report) : null;
  const recorder = new SpanRecorder(spans, writer, { keep: options.traces ?? (() => 0), otlp, report: options.report });
  return { db, writer, processes, repository, transcript, delivery, commits, queue, journal, approvals, guards, spans, recorder };
}

type MakeQueue = (
  db: SqliteConnection,
  writer: SqliteWriter,
  processes: ProcessRegistry,
  options: { concurrency: () => number; report: StoreOptions['report']; dataDir: string },
) => SqliteStepQueue;

/** Makes queues that worker processes share by a Redis, whose code is loaded only now. Throws as `checkRedis` does. */
async function sharedQueues(url: string): Promise<MakeQueue> {
  const [{ checkRedis, connected }, { SharedStepQueue }] = await Promise.all([
    import('../bullmq/redis.js'),
    import('../bullmq/step-queue.js'),
  ]);
  await checkRedis(url);
  const redis = await connected(url, { patient: false });
  return (db, writer, processes, options) => new SharedStepQueue(db, writer, processes, { ...options, url, redis });
}

/** Writes what is pending and closes the database; SQLite folds its log file in when the last process leaves. */
export async function closeStore(store: Store): Promise<void> {
  await store.recorder.close();
  await store.writer.close();
  store.db.close();
}
