import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { isTurnEvent, type TurnEvent, type Write } from '#libs/turn';
import { SharedStepQueue } from '../../libs/local/src/bullmq/step-queue.js';
import { SessionsModule } from '../../libs/local/src/sessions/sessions.module.js';
import { SqliteTranscript } from '../../libs/local/src/sessions/transcript.js';
import { DATABASE_FILE } from '../../libs/local/src/sqlite/index.js';
import { SqliteJournal } from '../../libs/local/src/turns/journal.js';
import { SqliteStepQueue } from '../../libs/local/src/turns/queue.js';
import { RedisServer } from '../support/redis-server.js';
import { newDataDir, openTestStore, removeDataDir, type TestStore } from '../support/store.js';
import type { StoreAdapter, StoreProcess, TestedStore } from './store.js';
import { committed } from './turns.js';

/** One process on a data folder. */
class SqliteProcess implements StoreProcess {
  private isOver = false;

  private constructor(readonly opened: TestStore) {}

  static async open(dataDir: string, redisUrl?: string): Promise<SqliteProcess> {
    const opened = await openTestStore([SessionsModule], dataDir, { redisUrl });
    return new SqliteProcess(opened);
  }

  get journal(): TestStore['store']['journal'] {
    return this.opened.store.journal;
  }
  get transcript(): TestStore['store']['transcript'] {
    return this.opened.store.transcript;
  }
  get queue(): TestStore['store']['queue'] {
    return this.opened.store.queue;
  }
  get bus(): TestStore['bus'] {
    return this.opened.bus;
  }

  get reports(): readonly string[] {
    return this.opened.reports;
  }

  hear(listener: (event: TurnEvent) => void | Promise<void>): void {
    const { delivery, processes } = this.opened.store;
    delivery.addListeners({
      wants: (type) => type.startsWith('harness::'),
      deliver: async (event) => {
        if (isTurnEvent(event)) await listener(event);
      },
    });
    delivery.recover((owner) => processes.hasEnded(owner, Date.now())); // as the runtime does once its functions are bound
  }

  /** Goes without a word, as a process does that is killed: its database is shut before anything can be handed back. */
  async kill(): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    const { db, processes, queue, delivery } = this.opened.store;
    const { owner } = processes;
    const file = db.name;
    db.close();
    await queue.stop(0);
    await delivery.settle(0);
    const outside = new Sqlite(file);
    outside.prepare(`UPDATE processes SET start_token = 'of a process that is gone' WHERE owner = ?`).run(owner);
    outside.close();
  }

  async close(): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    await this.opened.store.queue.stop(0);
    await this.opened.store.delivery.settle(0);
    await this.opened.close();
  }
}

/** A data folder with the processes on it. */
class SqliteStore implements TestedStore {
  private readonly processes: SqliteProcess[] = [];

  constructor(
    readonly dataDir: string,
    private readonly redis?: RedisServer,
  ) {}

  async open(): Promise<SqliteProcess> {
    const process = await SqliteProcess.open(this.dataDir, this.redis?.url);
    this.processes.push(process);
    return process;
  }

  async kill(process: StoreProcess): Promise<void> {
    await this.processes.find((own) => own === process)?.kill();
  }

  async dispose(): Promise<void> {
    for (const process of this.processes) await process.close();
    await this.redis?.dispose();
    removeDataDir(this.dataDir);
  }
}

/** The embedded store: SQLite alone. */
export const sqlite: StoreAdapter = {
  name: 'SQLite',
  covers: [SqliteJournal, SqliteTranscript, SqliteStepQueue],
  abilities: { processes: 'many', ownedSteps: true, windowTells: 'entries' },
  make: () => Promise.resolve(new SqliteStore(newDataDir())),
  cutOff,
};

/** The store of several workers: SQLite, with steps shared by BullMQ on a Redis of its own. */
export const bullmq: StoreAdapter = {
  name: 'SQLite with BullMQ',
  covers: [SharedStepQueue],
  abilities: { processes: 'many', ownedSteps: false, windowTells: 'entries' },
  make: async () => new SqliteStore(newDataDir(), await RedisServer.open()),
};

/** A copy of the files after each statement of a commit is what a process that is killed there leaves. */
async function* cutOff(prepare: readonly Write[], commit: readonly Write[]): AsyncIterable<TestedStore> {
  const dataDir = newDataDir();
  const process = await SqliteProcess.open(dataDir);
  const copies: string[] = [];
  let isCommitting = true;
  const copy = (): void => {
    const to = newDataDir();
    for (const file of [DATABASE_FILE, `${DATABASE_FILE}-wal`])
      if (existsSync(join(dataDir, file))) cpSync(join(dataDir, file), join(to, file));
    copies.push(to);
  };
  try {
    await committed(process, ...prepare);
    process.hear(() => new Promise<void>(() => undefined));
    const { db, processes } = process.opened.store;
    db.pragma('cache_size = 1'); // pages go to the file as they are written, also before the commit
    db.function('effect', () => {
      if (isCommitting) copy();
      return null;
    });
    for (const { name, type } of effects(db))
      db.exec(`CREATE TEMP TRIGGER cut_${type}_${name} AFTER ${type} ON ${name} BEGIN SELECT effect(); END`);
    await committed(process, ...commit);
    copy();
    isCommitting = false;
    for (const dir of copies) {
      const outside = new Sqlite(join(dir, DATABASE_FILE));
      outside.prepare(`UPDATE processes SET start_token = 'of a process that is gone' WHERE owner = ?`).run(processes.owner);
      outside.close();
    }
  } finally {
    await process.close();
    removeDataDir(dataDir);
  }
  for (const dir of copies) yield new SqliteStore(dir);
}

/** Every kind of change of every table. */
function effects(db: Sqlite.Database): { name: string; type: string }[] {
  const tables = db
    .prepare(`SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
    .pluck()
    .all() as string[];
  return tables.flatMap((name) => ['INSERT', 'UPDATE', 'DELETE'].map((type) => ({ name, type })));
}
