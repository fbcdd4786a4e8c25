import { Inject, Injectable } from '@nestjs/common';
import { errorMessage, type JsonValue } from '#libs/contracts';
import { DATABASE, type SqliteConnection, type SqliteStatement, SqliteWriter } from '../sqlite/index.js';
import { type StateCode, StateError } from './errors.js';
import { applyUpdateOps, type UpdateOp, type UpdateOpError } from './update-ops.js';

/** What a write did; `undefined` stands for a key that is not there. */
export interface StateChange {
  old: JsonValue | undefined;
  value: JsonValue | undefined;
}
export interface StateRow {
  key: string;
  /** JSON text. */
  value: string;
}

/** Largest stored value, in bytes of JSON. */
const MAX_VALUE_BYTES = 8_388_608;

/** Values by scope and key, on SQLite. A write is durable when its promise resolves. */
@Injectable()
export class StateStore {
  private readonly selectOne: SqliteStatement;
  private readonly upsert: SqliteStatement;
  private readonly remove: SqliteStatement;
  private readonly selectScope: SqliteStatement;
  private readonly selectKeys: SqliteStatement;
  private readonly selectGroups: SqliteStatement;

  constructor(
    @Inject(DATABASE) db: SqliteConnection,
    @Inject(SqliteWriter) private readonly writer: SqliteWriter,
  ) {
    this.selectOne = db.prepare('SELECT value FROM state WHERE scope = ? AND key = ?');
    this.upsert = db.prepare(
      'INSERT INTO state (scope, key, value) VALUES (?, ?, ?) ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value',
    );
    this.remove = db.prepare('DELETE FROM state WHERE scope = ? AND key = ?');
    this.selectScope = db.prepare('SELECT key, value FROM state WHERE scope = ? ORDER BY key');
    this.selectKeys = db.prepare('SELECT key FROM state WHERE scope = ? ORDER BY key');
    this.selectGroups = db.prepare('SELECT DISTINCT scope FROM state ORDER BY scope');
  }

  get(scope: string, key: string): JsonValue | undefined {
    return reading('GET_ERROR', () => this.read(scope, key));
  }

  set(scope: string, key: string, value: JsonValue): Promise<StateChange> {
    const text = textOf(value, 'SET_ERROR');
    return this.write('SET_ERROR', () => {
      const old = this.read(scope, key);
      this.upsert.run(scope, key, text);
      return { old, value: parse(text) };
    });
  }

  delete(scope: string, key: string): Promise<StateChange> {
    return this.write('DELETE_ERROR', () => {
      const old = this.read(scope, key);
      if (old !== undefined) this.remove.run(scope, key);
      return { old, value: undefined };
    });
  }

  /** Applies ops in one transaction; when none of them fits, nothing is written and `value` is what was there. */
  update(scope: string, key: string, ops: readonly UpdateOp[]): Promise<StateChange & { errors: UpdateOpError[]; applied: boolean }> {
    return this.write('UPDATE_ERROR', () => {
      const old = this.read(scope, key);
      const { value, errors, applied } = applyUpdateOps(old, ops);
      if (!applied) return { old, value: old, errors, applied };
      this.upsert.run(scope, key, textOf(value, 'UPDATE_ERROR'));
      return { old, value, errors, applied };
    });
  }

  /** Puts `value` (`undefined` removes) in the place of what is there when `may` agrees to that, in one transaction; says whether it did. */
  replaceIf(scope: string, key: string, may: (there: JsonValue | undefined) => boolean, value: JsonValue | undefined): Promise<boolean> {
    return this.write('SET_ERROR', () => {
      if (!may(this.read(scope, key))) return false;
      if (value === undefined) this.remove.run(scope, key);
      else this.upsert.run(scope, key, textOf(value, 'SET_ERROR'));
      return true;
    });
  }

  rows(scope: string): StateRow[] {
    return reading('LIST_ERROR', () => this.selectScope.all(scope) as StateRow[]);
  }

  keys(scope: string): string[] {
    return reading('LIST_ERROR', () => (this.selectKeys.all(scope) as { key: string }[]).map((row) => row.key));
  }

  groups(): string[] {
    return reading('LIST_GROUPS_ERROR', () => (this.selectGroups.all() as { scope: string }[]).map((row) => row.scope));
  }

  private read(scope: string, key: string): JsonValue | undefined {
    const row = this.selectOne.get(scope, key) as { value: string } | undefined;
    return row === undefined ? undefined : parse(row.value);
  }

  private async write<T>(code: StateCode, work: () => T): Promise<T> {
    try {
      return await this.writer.submit(work, 'state');
    } catch (error) {
      throw asStateError(code, error);
    }
  }
}

export const parse = (text: string): JsonValue => JSON.parse(text) as JsonValue;

function textOf(value: JsonValue, code: StateCode): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new StateError(code, `value is not JSON: ${errorMessage(error)}`, { cause: error });
  }
  if (text === undefined) throw new StateError(code, 'value is not JSON');
  const size = Buffer.byteLength(text);
  if (size > MAX_VALUE_BYTES) throw new StateError('VALUE_TOO_LARGE', `value has ${size} bytes, more than ${MAX_VALUE_BYTES}`);
  return text;
}

function reading<T>(code: StateCode, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw asStateError(code, error);
  }
}

const asStateError = (code: StateCode, error: unknown): StateError =>
  error instanceof StateError ? error : new StateError(code, errorMessage(error), { cause: error });
