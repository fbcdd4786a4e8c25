import { randomBytes } from 'node:crypto';
import type { SqliteConnection, SqliteStatement } from '../sqlite/index.js';
import { hostToken, isRunning, startToken } from './liveness.js';

/** `ProcessRegistry.leaseMs` unless told otherwise. */
const LEASE_MS = 30_000;
/** How often the lease is renewed while it lasts. */
const BEATS = 6;

interface ProcessRow {
  owner: string;
  pid: number;
  start_token: string;
  host_token: string;
  lease_until: number;
  gateway: string | null;
}

/** Where the gateway of a process is, and whether it wants a token. */
export interface GatewayAddress {
  url: string;
  needs_token: boolean;
}

/** The processes that work on one database, and whether they still live. All methods are synchronous. */
export class ProcessRegistry {
  /** The id of this process in the database. */
  readonly owner = `p_${randomBytes(8).toString('hex')}`;
  /** How often a process that runs steps renews its lease, in ms. */
  readonly heartbeatMs: number;
  private readonly host = hostToken();
  private readonly upsert: SqliteStatement;
  private readonly find: SqliteStatement;
  private leaseUntil = 0;
  private gateway: string | null = null;

  constructor(
    private readonly db: SqliteConnection,
    /** How long this process may go without a sign of life before others take its steps, in ms. */
    readonly leaseMs = LEASE_MS,
  ) {
    this.heartbeatMs = leaseMs / BEATS;
    this.upsert = db.prepare(
      `INSERT INTO processes (owner, pid, start_token, host_token, lease_until, gateway) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (owner) DO UPDATE SET lease_until = excluded.lease_until, gateway = excluded.gateway`,
    );
    this.find = db.prepare('SELECT * FROM processes WHERE owner = ?');
  }

  /** Inside a write transaction: registers this process, or renews its lease when a heartbeat is due. */
  renew(now: number, force = false): void {
    if (!force && this.leaseUntil - now > this.leaseMs - this.heartbeatMs) return;
    this.leaseUntil = now + this.leaseMs;
    this.upsert.run(this.owner, process.pid, startToken(process.pid), this.host, this.leaseUntil, this.gateway);
  }

  /** Says, from the next renewal on, where workers of other processes reach this one. */
  announce(gateway: GatewayAddress): void {
    this.gateway = JSON.stringify(gateway);
  }

  /** The gateway of a process of this host that lives; null when there is none. */
  gatewayHere(now: number): GatewayAddress | null {
    const rows = this.db.prepare('SELECT * FROM processes WHERE gateway IS NOT NULL ORDER BY lease_until DESC').all() as ProcessRow[];
    const row = rows.find((each) => each.owner !== this.owner && each.host_token === this.host && !this.isOver(each, now));
    return row?.gateway == null ? null : (JSON.parse(row.gateway) as GatewayAddress);
  }

  /** True when the owner cannot be counted on any more: its process is gone, or its lease is over. */
  isGone(owner: string, now: number): boolean {
    if (owner === this.owner) return false;
    const row = this.find.get(owner) as ProcessRow | undefined;
    if (row === undefined || row.lease_until < now) return true;
    return row.host_token === this.host && !isRunning(row.pid, row.start_token);
  }

  /** True when a process is no more. A lease says less: one that has nothing to run gives no sign of life, and lives. */
  hasEnded(owner: string, now: number): boolean {
    if (owner === this.owner) return false;
    const row = this.find.get(owner) as ProcessRow | undefined;
    return row === undefined || this.isOver(row, now);
  }

  private isOver({ host_token, pid, start_token, lease_until }: ProcessRow, now: number): boolean {
    return host_token === this.host ? !isRunning(pid, start_token) : lease_until < now;
  }

  /** Inside a write transaction: forgets processes that have ended and own nothing any more. */
  prune(now: number): void {
    for (const row of this.db.prepare('SELECT * FROM processes').all() as ProcessRow[]) {
      if (row.owner === this.owner || !this.isOver(row, now)) continue;
      this.db
        .prepare(
          `DELETE FROM processes WHERE owner = ? AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.owner = processes.owner)
         AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.owner = processes.owner)`,
        )
        .run(row.owner);
    }
  }

  /** Inside a write transaction: takes this process off the list. */
  leave(): void {
    this.db.prepare('DELETE FROM processes WHERE owner = ?').run(this.owner);
  }
}
