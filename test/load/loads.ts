import { Crowd } from './crowd.js';

const MB = 2 ** 20;
const rss = (): number => process.memoryUsage().rss;
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate').length;

/** Bytes that the process holds: its heap and what hangs on it. Exact only with `--expose-gc`. */
async function heldBytes(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export interface FamiliesReport {
  sessions: number;
  /** Turns by how the store says that they ended; children are among them. */
  statuses: { [status: string]: number };
  held_calls: number;
  work_calls: number;
  /** Calls without a single result. */
  unanswered: number;
  seconds: number;
  rss_before_mb: number;
  rss_after_mb: number;
  /** What the process still holds of it once all is over. */
  left_mb: number;
  reports: string[];
}

/** That many sessions at once, each with a held call, a child and an ordinary call; then every hold is released. */
export async function families(sessions: number): Promise<FamiliesReport> {
  const crowd = await Crowd.open(64);
  try {
    await crowd.release(await crowd.park(10, 'family'));
    const [held, rssBefore] = [await heldBytes(), rss()];
    const started = performance.now();
    await crowd.release(await crowd.park(sessions, 'family'));
    const seconds = (performance.now() - started) / 1_000;
    const { statuses, unanswered } = crowd.tally();
    return {
      sessions,
      statuses,
      unanswered,
      held_calls: crowd.called.held - 10,
      work_calls: crowd.called.work - 10,
      seconds: round(seconds),
      rss_before_mb: round(rssBefore / MB),
      rss_after_mb: round(rss() / MB),
      left_mb: round(((await heldBytes()) - held) / MB),
      reports: crowd.reports,
    };
  } finally {
    await crowd.close();
  }
}

export interface ParkedReport {
  parked: number;
  /** Memory of the process for each parked turn. */
  bytes_each: number;
  /** Timers that came with them. */
  timers_more: number;
  /** What an ordinary turn takes beside them. */
  plain_turn_ms: number;
  park_seconds: number;
  release_seconds: number;
  statuses: { [status: string]: number };
  unanswered: number;
  rss_before_mb: number;
  rss_after_mb: number;
  reports: string[];
}

/** Turns that may run side by side while many more are parked. */
const SLOTS = 16;

/** That many turns wait for a held call, beside those `before` that fill the caches, which have a fixed size; then all are released. */
export async function parkedTurns(count: number, before: number): Promise<ParkedReport> {
  const crowd = await Crowd.open(SLOTS);
  try {
    const warm = await crowd.park(before, 'alone');
    const [held, rssBefore, timersBefore] = [await heldBytes(), rss(), timers()];
    const started = performance.now();
    const parked = await crowd.park(count, 'alone');
    const parkSeconds = (performance.now() - started) / 1_000;
    const own = 160 * count; // the list of this test: two ids for each
    const [bytes, timersMore, rssAfter] = [(await heldBytes()) - held - own, timers() - timersBefore, rss()];
    const plain_turn_ms = await crowd.plainTurn();
    const releasing = performance.now();
    await crowd.release([...warm, ...parked]);
    const { statuses, unanswered } = crowd.tally();
    return {
      parked: count,
      bytes_each: Math.round(bytes / count),
      timers_more: timersMore,
      plain_turn_ms: round(plain_turn_ms),
      park_seconds: round(parkSeconds),
      release_seconds: round((performance.now() - releasing) / 1_000),
      statuses,
      unanswered,
      rss_before_mb: round(rssBefore / MB),
      rss_after_mb: round(rssAfter / MB),
      reports: crowd.reports,
    };
  } finally {
    await crowd.close();
  }
}

const round = (value: number): number => Math.round(value * 10) / 10;
