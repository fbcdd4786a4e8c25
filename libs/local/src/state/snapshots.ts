import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { JsonValue } from '#libs/contracts';
import { CLOCK, type Clock } from '#libs/turn';
import { StateError } from './errors.js';
import { parse, type StateRow, StateStore } from './state-store.js';

export interface EntryPage {
  entries: { key: string; value: JsonValue }[];
  next_cursor: string | null;
  done: boolean;
  /** Entries before this page. */
  offset: number;
  total: number;
}
interface Snapshot {
  scope: string;
  rows: StateRow[];
  offset: number;
  bytes: number;
  expiresAt: number;
}

const MAX_SNAPSHOTS = 16;
const MAX_BYTES = 64_000_000;
const LIFE_MS = 120_000;
const ROW_BYTES = 128;
/** What a page's own fields take. */
const PAGE_BYTES = 160;

/** Pages of a scope's entries. All pages of one listing show the scope as it was at the first; a cursor works once. */
@Injectable()
export class StateSnapshots {
  private readonly byCursor = new Map<string, Snapshot>();

  constructor(
    @Inject(StateStore) private readonly store: StateStore,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** @throws StateError `INVALID_CURSOR`, `ROW_TOO_LARGE`, `SNAPSHOT_CAPACITY` */
  page(scope: string, cursor: string | null, limit: number, maxBytes: number): EntryPage {
    this.forgetExpired();
    const snapshot = cursor === null ? this.capture(scope) : this.take(scope, cursor);
    const { rows, offset } = snapshot;
    let end = offset;
    let bytes = PAGE_BYTES;
    for (; end < rows.length && end - offset < limit; end++) {
      const size = bytesOf(rows[end]);
      if (bytes + size > maxBytes) break;
      bytes += size;
    }
    if (end === offset && end < rows.length) {
      if (cursor !== null) this.byCursor.set(cursor, snapshot);
      throw new StateError(
        'ROW_TOO_LARGE',
        `the entry ${JSON.stringify(rows[end]?.key)} has ${bytesOf(rows[end])} bytes; max_bytes is ${maxBytes}`,
      );
    }
    const entries = rows.slice(offset, end).map(({ key, value }) => ({ key, value: parse(value) }));
    const done = end >= rows.length;
    return { entries, next_cursor: done ? null : this.keep({ ...snapshot, offset: end }), done, offset, total: rows.length };
  }

  private capture(scope: string): Snapshot {
    const rows = this.store.rows(scope);
    const bytes = rows.reduce((sum, row) => sum + row.value.length + row.key.length + ROW_BYTES, 0);
    return { scope, rows, offset: 0, bytes, expiresAt: this.clock.now() + LIFE_MS };
  }

  private take(scope: string, cursor: string): Snapshot {
    const found = this.byCursor.get(cursor);
    if (found === undefined || found.scope !== scope) {
      throw new StateError('INVALID_CURSOR', 'cursor is unknown, used, expired or of another scope; start again without one');
    }
    this.byCursor.delete(cursor);
    return found;
  }

  private keep(snapshot: Snapshot): string {
    const held = [...this.byCursor.values()].reduce((sum, one) => sum + one.bytes, 0);
    if (this.byCursor.size >= MAX_SNAPSHOTS || held + snapshot.bytes > MAX_BYTES) {
      throw new StateError('SNAPSHOT_CAPACITY', 'too many listings are under way; try again later, or ask for larger pages');
    }
    const cursor = randomBytes(16).toString('base64url');
    this.byCursor.set(cursor, snapshot);
    return cursor;
  }

  private forgetExpired(): void {
    const now = this.clock.now();
    for (const [cursor, { expiresAt }] of this.byCursor) if (expiresAt <= now) this.byCursor.delete(cursor);
  }
}

const bytesOf = (row: StateRow | undefined): number =>
  row === undefined ? 0 : Buffer.byteLength(row.value) + Buffer.byteLength(JSON.stringify(row.key)) + 18;
