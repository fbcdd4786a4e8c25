import { errorMessage, type JsonValue } from '#libs/contracts';
import type { GuardStore, KeptGuard } from '#libs/iii';
import type { ProcessRegistry } from '../processes/registry.js';
import type { SqliteConnection, SqliteStatement, SqliteWriter } from '../sqlite/index.js';

interface GuardRow {
  id: string;
  type: string;
  function_id: string;
  config: string;
  metadata: string | null;
  worker: string;
  owned: number;
}

/**
 * The guards of a data folder: hooks of workers in other processes that deny while those are away, in every process that
 * runs turns of the folder.
 */
export class SqliteGuards implements GuardStore {
  private readonly insert: SqliteStatement;
  private readonly remove: SqliteStatement;
  private readonly all: SqliteStatement;
  private readonly find: SqliteStatement;
  /** What this process has decided and not yet written; null: removed. */
  private readonly unwritten = new Map<string, KeptGuard | null>();
  private seen = -1;

  constructor(
    private readonly db: SqliteConnection,
    private readonly writer: SqliteWriter,
    private readonly processes: ProcessRegistry,
    private readonly report: (message: string, context: { [key: string]: unknown }) => void,
  ) {
    this.insert = db.prepare(
      `INSERT INTO guards (id, type, function_id, config, metadata, worker, owned, process) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET type = excluded.type, function_id = excluded.function_id, config = excluded.config,
       metadata = excluded.metadata, worker = excluded.worker, owned = excluded.owned, process = excluded.process`,
    );
    this.remove = db.prepare('DELETE FROM guards WHERE id = ?');
    this.find = db.prepare('SELECT process FROM guards WHERE id = ?');
    this.all = db.prepare('SELECT * FROM guards ORDER BY id');
  }

  keep(guard: KeptGuard): void {
    const { id, type, function_id, config, metadata } = guard.trigger;
    this.write(id, guard, () =>
      this.insert.run(
        id,
        type,
        function_id,
        JSON.stringify(config ?? null),
        metadata === undefined ? null : JSON.stringify(metadata),
        guard.worker,
        guard.owned ? 1 : 0,
        this.processes.owner,
      ),
    );
  }

  drop(id: string): void {
    this.write(id, null, () => this.remove.run(id));
  }

  isElsewhere(id: string): boolean {
    const row = this.find.get(id) as { process: string } | undefined;
    return row !== undefined && row.process !== this.processes.owner && !this.processes.hasEnded(row.process, Date.now());
  }

  /** All guards, when another process may have changed something since the last time; else null. */
  changes(): KeptGuard[] | null {
    const version = this.db.pragma('data_version', { simple: true }) as number;
    if (version === this.seen) return null;
    this.seen = version;
    const kept = new Map((this.all.all() as GuardRow[]).map((row) => [row.id, guardOf(row)]));
    for (const [id, guard] of this.unwritten) {
      if (guard === null) kept.delete(id);
      else kept.set(id, guard);
    }
    return [...kept.values()];
  }

  private write(id: string, decided: KeptGuard | null, work: () => unknown): void {
    this.unwritten.set(id, decided);
    this.writer.submit(work, 'guard').then(
      () => {
        if (this.unwritten.get(id) === decided) this.unwritten.delete(id);
      },
      (error: unknown) =>
        this.report('a guard is only as long-lived as this process: it cannot be stored', { id, error: errorMessage(error) }),
    );
  }
}

const guardOf = ({ id, type, function_id, config, metadata, worker, owned }: GuardRow): KeptGuard => ({
  trigger: {
    id,
    type,
    function_id,
    config: JSON.parse(config) as JsonValue,
    ...(metadata === null ? {} : { metadata: JSON.parse(metadata) as JsonValue }),
  },
  worker,
  owned: owned === 1,
});
