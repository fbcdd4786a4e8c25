import type { SqliteConnection, SqliteStatement, SqliteWriter } from '../../sqlite/index.js';
import type { KeyDocument, TurnDocument, TurnDocuments } from './documents.js';

/** Documents in the data folder of this process. */
export class SqliteDocuments implements TurnDocuments {
  readonly guarantee =
    'turns are on the disk of this worker before they are answered for: they outlive its crashes, and those of the engine';
  private readonly select: SqliteStatement;
  private readonly upsert: SqliteStatement;
  private readonly selectOpen: SqliteStatement;
  private readonly delete: SqliteStatement;
  private readonly selectKey: SqliteStatement;
  private readonly insertKey: SqliteStatement;
  private readonly deleteKeys: SqliteStatement;

  constructor(
    db: SqliteConnection,
    private readonly writer: SqliteWriter,
  ) {
    this.select = db.prepare('SELECT body FROM turn_documents WHERE session_id = ?').pluck();
    this.upsert = db.prepare('INSERT OR REPLACE INTO turn_documents (session_id, open, body) VALUES (?, ?, ?)');
    this.selectOpen = db.prepare('SELECT session_id FROM turn_documents WHERE open = 1').pluck();
    this.delete = db.prepare('DELETE FROM turn_documents WHERE session_id = ?');
    this.selectKey = db.prepare('SELECT key, answer, expires_at FROM idempotency WHERE key = ?');
    this.insertKey = db.prepare('INSERT OR REPLACE INTO idempotency (key, answer, expires_at) VALUES (?, ?, ?)');
    this.deleteKeys = db.prepare('DELETE FROM idempotency WHERE expires_at <= ?');
  }

  read(sessionId: string): Promise<TurnDocument | null> {
    const body = this.select.get(sessionId) as string | undefined;
    return Promise.resolve(body === undefined ? null : parse(body));
  }

  async write(document: TurnDocument, isOpen: boolean): Promise<void> {
    await this.writer.submit(() => this.upsert.run(document.session_id, isOpen ? 1 : 0, JSON.stringify(document)), 'turn-document');
  }

  open(): Promise<string[]> {
    return Promise.resolve(this.selectOpen.all() as string[]);
  }

  readKey(key: string): Promise<KeyDocument | null> {
    const row = this.selectKey.get(key) as { key: string; answer: string; expires_at: number } | undefined;
    return Promise.resolve(row === undefined ? null : { ...row, answer: JSON.parse(row.answer) as KeyDocument['answer'] });
  }

  async writeKey({ key, answer, expires_at }: KeyDocument): Promise<void> {
    await this.writer.submit(() => this.insertKey.run(key, JSON.stringify(answer), expires_at), 'turn-key');
  }

  async dropKeys(now: number): Promise<void> {
    await this.writer.submit(() => this.deleteKeys.run(now), 'turn-keys');
  }

  async remove(sessionId: string): Promise<void> {
    await this.writer.submit(() => this.delete.run(sessionId), 'turn-document');
  }
}

const parse = (body: string): TurnDocument => JSON.parse(body) as TurnDocument;
