import { rmSync } from 'node:fs';
import { Module } from '@nestjs/common';
import { connectSdk, type Gateway, gatewaySettings, type LocalBus, type SdkBus, startGateway } from '#libs/iii';
import { CLOCK, isTurnEvent, type Journal, type StepQueue, systemClock, type Transcript, type TurnEvent, type Write } from '#libs/turn';
import type { TurnDocuments } from '../../libs/local/src/engine/journal/documents.js';
import { BusEntries } from '../../libs/local/src/engine/journal/entries.js';
import { BusJournal } from '../../libs/local/src/engine/journal/journal.js';
import { LocalEffects } from '../../libs/local/src/engine/journal/local-effects.js';
import { SqliteDocuments } from '../../libs/local/src/engine/journal/sqlite-documents.js';
import { StateDocuments } from '../../libs/local/src/engine/journal/state-documents.js';
import { DocumentStepQueue } from '../../libs/local/src/engine/journal/step-queue.js';
import { BusTranscript } from '../../libs/local/src/engine/journal/transcript.js';
import { StepJobs } from '../../libs/local/src/engine/step-jobs.js';
import { EngineStepQueue } from '../../libs/local/src/engine/step-queue.js';
import { TURN_QUEUE } from '../../libs/local/src/engine/turn-queue.js';
import { QueueModule } from '../../libs/local/src/queue/index.js';
import { GivenModule } from '../../libs/local/src/runtime/given.module.js';
import { openStore, type Store } from '../../libs/local/src/runtime/store.js';
import { SessionsModule } from '../../libs/local/src/sessions/sessions.module.js';
import { StateModule } from '../../libs/local/src/state/state.module.js';
import { SqliteJournal } from '../../libs/local/src/turns/journal.js';
import { newDataDir, openTestStore, removeDataDir, type TestStore } from '../support/store.js';
import type { StoreAdapter, StoreProcess, TestedStore } from './store.js';
import { committed } from './turns.js';

const TIMEOUT_MS = 10_000;

@Module({ imports: [GivenModule.of([[CLOCK, systemClock]]), SessionsModule, StateModule, QueueModule] })
class EngineWorkers {}

/** An engine with the workers that a harness needs beside it: sessions, state and a queue. They go on while the harness dies. */
class Engine {
  private constructor(
    readonly workers: TestStore,
    readonly gateway: Gateway,
  ) {}

  static async open(): Promise<Engine> {
    const workers = await openTestStore([EngineWorkers]);
    workers.engine.useQueue(workers.store.jobs);
    await workers.store.jobs.start(workers.bus, 'all');
    const gateway = await startGateway(workers.engine, gatewaySettings({ HARNESS_GATEWAY_PORT: '0' }));
    return new Engine(workers, gateway);
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await this.workers.store.jobs.stop(0);
    await this.workers.close();
    removeDataDir(this.workers.dataDir);
  }
}

/** Runs before each effect of a commit outside of the memory of its process; what it never lets pass has not happened. */
type Gate = () => Promise<void>;

/** A process with what it has in its own data folder. */
abstract class EngineProcess implements StoreProcess {
  abstract readonly journal: Journal;
  abstract readonly transcript: Transcript;
  abstract readonly queue: StepQueue;
  abstract readonly bus: LocalBus | SdkBus;
  private isOver = false;

  constructor(
    protected readonly store: Store,
    readonly reports: string[],
  ) {}

  hear(listener: (event: TurnEvent) => void | Promise<void>): void {
    const { delivery, processes } = this.store;
    delivery.addListeners({
      wants: (type) => type.startsWith('harness::'),
      deliver: async (event) => {
        if (isTurnEvent(event)) await listener(event);
      },
    });
    delivery.recover((owner) => processes.hasEnded(owner, Date.now()));
  }

  /** Goes without a word: nothing that it still does reaches anybody. */
  async kill(): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    this.store.db.prepare(`UPDATE processes SET start_token = 'of a process that is gone' WHERE owner = ?`).run(this.store.processes.owner);
    this.store.db.close();
    await this.queue.stop(0);
    await this.store.delivery.settle(0);
    await this.leave();
  }

  /** Cuts the connection to the engine. */
  protected abstract leave(): Promise<void>;
}

/** Documents in the data folder, or in the state of the engine. */
type Documents = 'sqlite' | 'engine';

class DocumentProcess extends EngineProcess {
  readonly journal: BusJournal;
  readonly transcript: BusTranscript;
  readonly queue: DocumentStepQueue;
  private readonly ending = new AbortController();

  private constructor(
    store: Store,
    reports: string[],
    readonly bus: LocalBus,
    kind: Documents,
    gate: Gate,
  ) {
    super(store, reports);
    const report = (message: string, context: object): void => void reports.push(`${message} ${JSON.stringify(context)}`);
    const timeoutMs = (): number => TIMEOUT_MS;
    const gated = gatedBus(bus, gate);
    const documents =
      kind === 'sqlite'
        ? gatedDocuments(new SqliteDocuments(store.db, store.writer), gate)
        : new StateDocuments(gated, timeoutMs, 'unknown');
    const entries = new BusEntries(gated, { updatesEnding: true }, timeoutMs, this.ending.signal, report);
    const local = gatedEffects(new LocalEffects(store.commits, store.approvals), gate);
    this.journal = new BusJournal({ documents, entries, local, report, mayWrite: () => Promise.resolve(), signal: this.ending.signal });
    this.transcript = new BusTranscript(bus, timeoutMs);
    this.queue = new DocumentStepQueue(this.journal, { concurrency: () => 4, report });
  }

  static async open(engine: Engine, dataDir: string, kind: Documents, gate: Gate = () => Promise.resolve()): Promise<DocumentProcess> {
    const reports: string[] = [];
    const report = (message: string, context: object): void => void reports.push(`${message} ${JSON.stringify(context)}`);
    const store = await openStore({ dataDir, durability: 'process', concurrency: () => 4, report });
    return new DocumentProcess(store, reports, engine.workers.engine.connect({ name: 'harness' }), kind, gate);
  }

  protected override async leave(): Promise<void> {
    this.ending.abort();
    await this.bus.disconnect();
  }
}

/** The bus as far as it changes something, behind a gate. */
const gatedBus = (bus: LocalBus, gate: Gate): LocalBus =>
  new Proxy(bus, {
    get: (target, name, receiver) =>
      name === 'trigger'
        ? async (request: Parameters<LocalBus['trigger']>[0]) => {
            if (!/::(get|list|messages|get-message)$/.test(request.function_id)) await gate();
            return await target.trigger(request);
          }
        : (Reflect.get(target, name, receiver) as unknown),
  });

const gatedDocuments = (documents: SqliteDocuments, gate: Gate): TurnDocuments =>
  new Proxy(documents, {
    get: (target, name) => {
      const own = Reflect.get(target, name, target) as unknown;
      if (typeof own !== 'function') return own;
      return async (...given: unknown[]) => {
        if (name === 'write' || name === 'writeKey' || name === 'remove') await gate();
        return (await Reflect.apply(own, target, given)) as unknown;
      };
    },
  });

const gatedEffects = (local: LocalEffects, gate: Gate): LocalEffects =>
  new Proxy(local, {
    get: (target, name) =>
      name === 'apply'
        ? async (document: Parameters<LocalEffects['apply']>[0]) => {
            await gate();
            await target.apply(document);
          }
        : (Reflect.get(target, name, target) as unknown),
  });

/** A process whose turns are on its disk, and whose steps go through the queue of the engine. */
class QueuedProcess extends EngineProcess {
  readonly journal: SqliteJournal;
  readonly transcript: Transcript;
  readonly queue: EngineStepQueue;
  private readonly jobs: StepJobs;

  private constructor(
    store: Store,
    reports: string[],
    readonly bus: SdkBus,
  ) {
    super(store, reports);
    this.jobs = new StepJobs(bus, (_, message, context) => void reports.push(`${message} ${JSON.stringify(context)}`));
    this.journal = store.journal;
    this.transcript = store.transcript;
    this.queue = store.queue as EngineStepQueue;
    this.queue.jobs = this.jobs;
  }

  static async open(engine: Engine, dataDir: string): Promise<QueuedProcess> {
    const reports: string[] = [];
    const report = (message: string, context: object): void => void reports.push(`${message} ${JSON.stringify(context)}`);
    const store = await openStore({ dataDir, durability: 'process', concurrency: () => 4, stepQueue: EngineStepQueue, report });
    const bus = await connectSdk(engine.gateway.url, { name: `harness-${Math.random()}`, log: () => undefined });
    return new QueuedProcess(store, reports, bus);
  }

  protected override async leave(): Promise<void> {
    this.jobs.close();
    await this.bus.close();
  }
}

/** What the processes of a test work on: an engine, and the data folder of the harness. */
class EngineStore<P extends EngineProcess> implements TestedStore {
  private readonly processes: P[] = [];

  constructor(
    private readonly engine: Engine,
    readonly dataDir: string,
    private readonly make: (engine: Engine, dataDir: string) => Promise<P>,
  ) {}

  async open(): Promise<P> {
    const process = await this.make(this.engine, this.dataDir);
    this.processes.push(process);
    return process;
  }

  async kill(process: StoreProcess): Promise<void> {
    await this.processes.find((own) => own === process)?.kill();
  }

  /** Hands a job of the engine's queue to the process that waits for its step. */
  arrive(arrive: (process: P) => boolean): void {
    this.processes.some(arrive);
  }

  async dispose(): Promise<void> {
    for (const process of this.processes) await process.kill();
    await this.engine.close();
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

const documentStore = async (kind: Documents): Promise<EngineStore<DocumentProcess>> =>
  new EngineStore(await Engine.open(), newDataDir(), (engine, dataDir) => DocumentProcess.open(engine, dataDir, kind));

/** Commits with the gate closed for good after so many effects; null when the commit has no more of them. */
async function cutAfter(
  kind: Documents,
  effects: number,
  prepare: readonly Write[],
  commit: readonly Write[],
): Promise<{ store: TestedStore; isWhole: boolean }> {
  const engine = await Engine.open();
  const dataDir = newDataDir();
  let left = Number.POSITIVE_INFINITY;
  let cut: () => void = () => undefined;
  const isCut = new Promise<void>((resolve) => {
    cut = resolve;
  });
  const gate: Gate = async () => {
    left -= 1;
    if (left >= 0) return;
    cut();
    await new Promise<void>(() => undefined);
  };
  const process = await DocumentProcess.open(engine, dataDir, kind, gate);
  await committed(process, ...prepare);
  process.hear(() => new Promise<void>(() => undefined));
  left = effects;
  await Promise.race([isCut, committed(process, ...commit)]);
  const isWhole = left >= 0;
  await process.kill();
  const store = new EngineStore(engine, dataDir, (own, folder) => DocumentProcess.open(own, folder, kind));
  return { store, isWhole };
}

async function* cutOff(kind: Documents, prepare: readonly Write[], commit: readonly Write[]): AsyncIterable<TestedStore> {
  for (let effects = 0; ; effects += 1) {
    const { store, isWhole } = await cutAfter(kind, effects, prepare, commit);
    yield store;
    if (isWhole) return;
  }
}

/** Turns as documents in the data folder of the worker, conversations by `session::*`. */
export const documentsOnDisk: StoreAdapter = {
  name: 'documents on disk, sessions over a bus',
  covers: [BusJournal, BusTranscript, DocumentStepQueue],
  abilities: { processes: 'one', ownedSteps: false, windowTells: 'messages' },
  make: () => documentStore('sqlite'),
  cutOff: (prepare, commit) => cutOff('sqlite', prepare, commit),
};

/** Turns as documents of `state::*`, conversations by `session::*`. */
export const documentsInState: StoreAdapter = {
  ...documentsOnDisk,
  name: 'documents in the state of an engine, sessions over a bus',
  covers: [BusJournal, BusTranscript, DocumentStepQueue],
  make: () => documentStore('engine'),
  cutOff: (prepare, commit) => cutOff('engine', prepare, commit),
};

/** Turns on the disk of the worker, steps by the queue of the engine. */
export const engineQueue: StoreAdapter = {
  name: 'SQLite with the queue of an engine',
  covers: [SqliteJournal, EngineStepQueue],
  abilities: { processes: 'one', ownedSteps: true, windowTells: 'entries' },
  make: async () => {
    const engine = await Engine.open();
    const { bus } = engine.workers;
    const store = new EngineStore(engine, newDataDir(), QueuedProcess.open);
    bus.registerFunction({ id: 'harness::turn' }, (payload) => {
      store.arrive(({ queue }) => queue.arrive(payload as Parameters<EngineStepQueue['arrive']>[0]));
      return null;
    });
    const config = { type: 'fifo', message_group_field: 'session_id', concurrency: 4 };
    await bus.trigger({ function_id: 'queue::define', payload: { queue: TURN_QUEUE, config } });
    return store;
  },
};
