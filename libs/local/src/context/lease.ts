import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { JsonValue } from '#libs/contracts';
import { CLOCK, type Clock } from '#libs/turn';
import { ProcessRegistry } from '../processes/registry.js';
import { StateStore } from '../state/index.js';

/** Where leases are kept, and how long one lasts at most, in ms. */
const SCOPE = 'context_lease';
const TTL_MS = 300_000;

/** Sees to it that of all processes one at a time sums up a conversation. A lease ends with its process. */
@Injectable()
export class CompactionLease {
  constructor(
    @Inject(StateStore) private readonly state: StateStore,
    @Inject(ProcessRegistry) private readonly processes: ProcessRegistry,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** Runs `work` with the lease of `key`; null when somebody else has it. */
  async with<T>(key: string, work: () => Promise<T>): Promise<T | null> {
    const token = randomUUID();
    const now = this.clock.now();
    const value = { token, owner: this.processes.owner, expires_at: now + TTL_MS };
    const taken = await this.state.replaceIf(SCOPE, key, (held) => this.isFree(held, now), value);
    if (!taken) return null;
    try {
      return await work();
    } finally {
      // One that cannot be given back ends by itself; what it was for is not lost over that.
      await this.state.replaceIf(SCOPE, key, (held) => holder(held)?.token === token, undefined).catch(() => false);
    }
  }

  private isFree(held: JsonValue | undefined, now: number): boolean {
    this.processes.renew(now); // others ask whether this process lives
    const lease = holder(held);
    return lease === null || lease.expires_at <= now || this.processes.isGone(lease.owner, now);
  }
}

function holder(held: JsonValue | undefined): { token: string; owner: string; expires_at: number } | null {
  if (typeof held !== 'object' || held === null || Array.isArray(held)) return null;
  const { token, owner, expires_at } = held;
  if (typeof token !== 'string' || typeof owner !== 'string' || typeof expires_at !== 'number') return null;
  return { token, owner, expires_at };
}
