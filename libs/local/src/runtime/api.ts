import type { Bus, GatewaySettings } from '#libs/iii';
import type { FeedEvent, LiveFeed, SettingsSource } from '#libs/turn';
import type { Vitals } from './vitals.js';

/**
 * What a process does with a data folder. `worker` runs every turn of it, also those that other processes left behind;
 * `client` runs only what it starts or adopts; `reader` runs nothing.
 */
export type RuntimeRole = 'worker' | 'client' | 'reader';

export interface OpenRuntimeOptions {
  dataDir: string;
  role: RuntimeRole;
  /**
   * Called once everything is there and before any step runs: the place to register models, functions and bindings that
   * queued turns need. When it rejects, the runtime does not open.
   */
  prepare?: (runtime: EmbeddedRuntime) => Promise<void>;
  /** Lets workers of other processes connect; none can when it is absent. Throws `gateway/port_unavailable`. */
  gateway?: GatewaySettings;
  /** Which of our siblings run, as text of `HARNESS_SIBLINGS`; all when absent. Throws `harness/invalid_setting`. */
  siblings?: string;
  /** What the gateway of a worker that serves the folder wants to be shown: `client` and `reader` call functions there. */
  token?: string;
  /**
   * Redis by which the `worker` processes of the folder share their steps; each has its own without it. Throws
   * `queue/redis_unreachable`, `queue/redis_eviction`.
   */
  redisUrl?: string;
  /** How long this process may go without a sign of life before others take its steps, in ms; 30,000 when absent. */
  leaseMs?: number;
  /** Also exports the traces of turns by OTLP over HTTP, as the `OTEL_*` variables of the environment say. */
  otlp?: boolean;
  /** Told of what goes wrong in the background. Never gets secrets. */
  log?: (level: 'debug' | 'info' | 'warn' | 'error', message: string, context: { [key: string]: unknown }) => void;
}

/** Who runs the live turn of a session: this process, another live one, one that is gone, or nobody (no live turn, or parked). */
export type TurnOwner = 'self' | 'other' | 'gone' | 'none';

/** The embedded runtime of one process: local engine, siblings, loop and store over one data folder. */
export interface EmbeddedRuntime {
  readonly dataDir: string;
  /** Calls any function: `harness::*`, `session::*`, `router::*`, `engine::*`, ... Where a worker serves the folder, it is that worker's. */
  readonly bus: Bus;
  /** What happens in the turns that this process runs. */
  readonly feed: LiveFeed;
  readonly settings: SettingsSource;
  /** Where workers of other processes connect, e.g. `ws://127.0.0.1:49134`; undefined without a gateway. */
  readonly gatewayUrl?: string | undefined;
  /** How this process and its data folder do; undefined where the harness runs somewhere else. */
  readonly vitals?: Vitals;
  /** Rejects with the reason when this process can work no more, e.g. `harness/duplicate`; undefined where that does not happen. */
  readonly ended?: Promise<never>;
  /** Durable commits of this process so far. */
  readonly commits: number;
  /** Secrets that the configuration gives now, to be kept out of logs; undefined where the harness runs somewhere else. */
  secrets?(): readonly string[];
  /** What is wrong with the configuration files now, one line each; while a file has a fault, the last good values are in force. */
  configurationFaults(): readonly string[];
  turnOwner(sessionId: string): Promise<TurnOwner>;
  /** Takes over the turn of a session whose process is gone; false when there is nothing to take. */
  adopt(sessionId: string): Promise<boolean>;
  /**
   * The events of a turn that another process runs, made from what it stores; ends with `turn_finished`. Entries that
   * are there already are told first when `fromStart`.
   */
  follow(sessionId: string, turnId: string, options?: { signal?: AbortSignal; fromStart?: boolean }): AsyncIterable<FeedEvent>;
  /** Stops taking steps, waits for running ones for at most `graceMs` (default 5000), hands the rest back, closes the store. Called again, it shortens the wait. */
  close(graceMs?: number): Promise<void>;
}
