import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkAtRest, type Known } from './check.js';
import { Life } from './life.js';
import type { JobLine, PlannedSend, WorkerPlan } from './protocol.js';

/** A data folder that many processes live and die in, and what they told. It stays when something is broken. */
export class Folder implements Known {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'harness-crash-'));
  readonly tried: PlannedSend[] = [];
  readonly acked = new Map<string, Set<string>>();
  readonly stopped = new Set<string>();
  readonly enqueued: JobLine[] = [];

  /** With settings that make streams store often and retries come soon; its workers share it by the Redis at `redisUrl`, if there is one. */
  constructor(private readonly redisUrl?: string) {
    mkdirSync(join(this.dataDir, 'config'));
    writeFileSync(join(this.dataDir, 'config', 'harness.yaml'), 'stream_coalesce_ms: 10\nstep_backoff_ms: 20\n');
  }

  /** One life to its end; what it told is written down. `lead` acts on it meanwhile. */
  async live(
    plan: Omit<WorkerPlan, 'dataDir' | 'redisUrl'>,
    { failpoint, lead }: { failpoint?: string; lead?: (life: Life) => Promise<void> } = {},
  ): Promise<{ life: Life; killed: boolean }> {
    const redis = this.redisUrl === undefined ? {} : { redisUrl: this.redisUrl };
    const life = new Life({ dataDir: this.dataDir, ...redis, ...plan }, { failpoint });
    const leading = lead?.(life);
    const { signal } = await life.ended;
    await leading;
    for (const line of life.lines) {
      if (line.type === 'sending') this.tried.push(line.send);
      if (line.type === 'acked') this.acked.set(line.key, (this.acked.get(line.key) ?? new Set()).add(line.turn_id));
      if (line.type === 'enqueued') this.enqueued.push(line.job);
      if (line.type === 'stop-acked' && line.stopping) this.stopped.add(line.session_id);
    }
    return { life, killed: signal === 'SIGKILL' && !life.hung };
  }

  /** The last life, which finishes every turn, then the check of all that is on disk. */
  async finish(sends: PlannedSend[] = []): Promise<string[]> {
    const { life } = await this.live({ role: 'worker', sends });
    const rested = life.lines.some((line) => line.type === 'idle') && life.stderr === '';
    const faults = rested ? [] : [`the last life did not come to rest${life.hung ? ' (it hung)' : ''}: ${life.stderr.slice(-400)}`];
    faults.push(...checkAtRest(this.dataDir, this));
    if (faults.length === 0) this.remove();
    return faults.map((fault) => `${fault} (${this.dataDir})`);
  }

  remove(): void {
    rmSync(this.dataDir, { recursive: true });
  }
}
