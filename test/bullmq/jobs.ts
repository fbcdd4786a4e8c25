import type { JsonValue } from '#libs/contracts';
import type { EmbeddedRuntime } from '#libs/local';
import type { TurnRig } from '../support/turn-rig.js';

/** A job of the queue `q`: the group that it belongs to, and its place among those that were put in. */
export interface Job {
  g: string;
  n: number;
}

/** What a function that jobs call saw of them, in all workers. */
export class JobLog {
  readonly seen: { worker: number; job: Job }[] = [];
  running = 0;
  most = 0;
  /** Runs of jobs of one group beside each other. */
  overlaps = 0;
  private readonly groups = new Set<string>();
  private readonly listeners = new Set<() => void>();

  /** Registers the function that jobs call; `work` is what it takes. */
  register({ bus }: EmbeddedRuntime, worker: number, work: (job: Job) => Promise<void> | void = () => undefined, id = 'job::run'): void {
    bus.registerFunction({ id }, async (payload) => {
      const job = payload as unknown as Job;
      if (this.groups.has(job.g)) this.overlaps += 1;
      this.groups.add(job.g);
      this.running += 1;
      this.most = Math.max(this.most, this.running);
      this.seen.push({ worker, job });
      for (const listener of this.listeners) listener();
      try {
        await work(job);
      } finally {
        this.running -= 1;
        this.groups.delete(job.g);
      }
    });
  }

  async until(holds: () => boolean): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve) => {
      this.listeners.add(() => {
        if (holds()) resolve();
      });
    });
  }

  /** What of the jobs up to `count` did not run once, in the order of its group and beside no other of it; nothing when all did. */
  faults(count: number): string[] {
    const groups = [...new Set(this.seen.map(({ job }) => job.g))];
    const unordered = groups.filter((group) => this.order(group).some((n, index, all) => n <= (all[index - 1] ?? -1)));
    return [
      ...(this.seen.length === count ? [] : [`${this.seen.length} jobs ran, ${count} were queued`]),
      ...unordered.map((group) => `the jobs of ${group} ran as ${this.order(group).join(' ')}`),
      ...(this.overlaps === 0 ? [] : [`${this.overlaps} jobs ran beside another of their group`]),
    ];
  }

  /** Numbers of the jobs of a group, as they ran. */
  order(group: string): number[] {
    return this.seen.flatMap(({ job }) => (job.g === group ? [job.n] : []));
  }
}

/** What `queue::define` takes for a queue that keeps the order of groups. */
export const FIFO = { type: 'fifo', message_group_field: 'g' };

/** Puts a job into the queue `q`. */
export const enqueue = (rig: TurnRig, payload: Job): Promise<{ messageReceiptId: string }> =>
  rig.runtime.bus.trigger({ function_id: 'job::run', payload: payload as unknown as JsonValue, action: { type: 'enqueue', queue: 'q' } });
