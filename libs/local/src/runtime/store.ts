import type { Journal, Transcript } from '#libs/turn';
import { ApprovalInbox } from '../approval/inbox.js';
import type { JobWake, StepWake } from '../bullmq/index.js';
import { SqliteGuards } from '../guards/guards.js';
import { ProcessRegistry } from '../processes/registry.js';
import { type JobQueue, SqliteQueue } from '../queue/index.js';
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
  jobs: JobQueue;
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
  /** The kind of step queue; `SqliteStepQueue` when absent. Not with `redisUrl`. */
  stepQueue?: typeof SqliteStepQueue;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

/** Opens the store of a data folder. Throws as `openDatabase` does. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const queuesOf = options.redisUrl === undefined ? ownQueues : await sharedQueues(options.redisUrl);
  const db = await openDatabase({ dataDir: options.dataDir, durability: options.durability });
  const writer = new SqliteWriter(db);
  const processes = new ProcessRegistry(db, options.leaseMs);
  const repository = new SessionRepository(db);
  const transcript = new SqliteTranscript(db, repository);
  const delivery = new EventDelivery(db, processes.owner, options.report);
  const commits = new StoreCommits(writer, transcript, processes, delivery);
  const { queue, jobs } = await queuesOf({ db, writer, processes }, options);
  const approvals = new ApprovalInbox(db, repository);
  const journal = new SqliteJournal(db, commits, repository, queue, approvals);
  const guards = new SqliteGuards(db, writer, processes, options.report);
  const spans = new SpanTable(db);
  const otlp = options.otlp === true ? (await import('../traces/otlp.js')).otlpExport(options.report) : null;
  const recorder = new SpanRecorder(spans, writer, { keep: options.traces ?? (() => 0), otlp, report: options.report });
  return { db, writer, processes, repository, transcript, delivery, commits, queue, jobs, journal, approvals, guards, spans, recorder };
}

type Queues = Pick<Store, 'queue' | 'jobs'>;
type MakeQueues = (over: Pick<Store, 'db' | 'writer' | 'processes'>, options: StoreOptions) => Queues | Promise<Queues>;

const ownQueues: MakeQueues = ({ db, writer, processes }, { concurrency, report, stepQueue = SqliteStepQueue }) => ({
  queue: new stepQueue(db, writer, processes, { concurrency, report }),
  jobs: new SqliteQueue(db, writer, processes, report),
});

/** Makes queues that worker processes share by a Redis, whose code is loaded only now. Throws as `checkRedis` does. */
async function sharedQueues(url: string): Promise<MakeQueues> {
  const { checkRedis, SharedJobQueue, SharedStepQueue, Wakes } = await import('../bullmq/index.js');
  await checkRedis(url);
  return async ({ db, writer, processes }, { concurrency, report, dataDir }) => {
    const options = { url, dataDir, lockMs: processes.leaseMs, report };
    const turns = await Wakes.open<StepWake>({ ...options, kind: 'turn' });
    const jobs = await Wakes.open<JobWake>({ ...options, kind: 'job' });
    return {
      queue: new SharedStepQueue(db, writer, processes, turns, { concurrency, report }),
      jobs: new SharedJobQueue(db, writer, processes, jobs, report),
    };
  };
}

/** Writes what is pending and closes the database; SQLite folds its log file in when the last process leaves. */
export async function closeStore(store: Store): Promise<void> {
  await store.recorder.close();
  await store.writer.close();
  store.db.close();
}
