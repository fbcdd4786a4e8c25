import type { WaitingJob } from './jobs.js';

/** Jobs that run one after the other: those of a group, or a single one. */
export interface Lane {
  readonly key: string;
  /** Ids in order; the first is the one that runs or comes next. */
  readonly ids: number[];
  /** When the first one may run, ms since the epoch. */
  notBefore: number;
}

/** Places at the front of the list of ready lanes that may be spent before it is cut. */
const MAX_SPENT = 4_096;

/** The order of work of one queue in this process: lanes side by side, each in order. */
export class Lanes {
  private readonly lanes = new Map<string, Lane>();
  private ready: Lane[] = [];
  private nextReady = 0;
  running = 0;

  /** Adds a job that is not there yet; returns its lane when that is new, for the caller to make ready in time. */
  add(job: WaitingJob): Lane | null {
    const key = job.group_key === null ? `#${job.id}` : `=${job.group_key}`;
    const lane = this.lanes.get(key);
    if (lane !== undefined) {
      insertSorted(lane.ids, job.id);
      return null;
    }
    const made: Lane = { key, ids: [job.id], notBefore: job.not_before };
    this.lanes.set(key, made);
    return made;
  }

  /** The highest id that waits in a group; 0 when none does. */
  lastOf(group: string): number {
    return this.lanes.get(`=${group}`)?.ids.at(-1) ?? 0;
  }

  get size(): number {
    return this.lanes.size;
  }

  makeReady(lane: Lane): void {
    this.ready.push(lane);
  }

  /** Takes the lane that is ready for the longest time, with the id to run; null when none is. */
  next(): { lane: Lane; id: number } | null {
    const lane = this.ready[this.nextReady];
    const id = lane?.ids[0];
    if (lane === undefined || id === undefined) return null;
    this.nextReady += 1;
    if (this.nextReady === this.ready.length || this.nextReady > MAX_SPENT) {
      this.ready = this.ready.slice(this.nextReady);
      this.nextReady = 0;
    }
    this.running += 1;
    return { lane, id };
  }

  /** The job that ran in the lane is over; false when the lane is empty now and gone. */
  advance(lane: Lane, id: number): boolean {
    this.running -= 1;
    lane.ids.splice(lane.ids.indexOf(id), 1);
    lane.notBefore = 0;
    if (lane.ids.length > 0) return true;
    this.lanes.delete(lane.key);
    return false;
  }

  /** The job that ran in the lane is tried again at `notBefore`, before those behind it. */
  pause(lane: Lane, notBefore: number): void {
    this.running -= 1;
    lane.notBefore = notBefore;
  }
}

function insertSorted(ids: number[], id: number): void {
  let at = ids.length;
  while (at > 0 && (ids[at - 1] ?? 0) > id) at -= 1;
  if (ids[at - 1] !== id) ids.splice(at, 0, id);
}
