import type { INestMicroservice } from '@nestjs/common';
import { errorMessage, type JsonValue } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import {
  type FeedEvent,
  type LiveFeed,
  LOOP_PORTS,
  type LoopPorts,
  SETTINGS,
  type SettingsSource,
  TurnExecutor,
  takeLeftover,
} from '#libs/turn';
import { ConfigurationWatch, describeFault } from '../configuration/index.js';
import { PendingSweep } from '../cron/index.js';
import { followOverBus } from '../remote/follow.js';
import { ProviderRegistry } from '../router/index.js';
import type { EmbeddedRuntime, OpenRuntimeOptions, TurnOwner } from '../runtime/api.js';
import { closeStore } from '../runtime/store.js';
import { Vitals } from '../runtime/vitals.js';
import { ShellService } from '../shell/shell.service.js';
import type { EngineParts } from './engine.module.js';
import { checkOurs } from './identity.js';
import type { Log } from './reach.js';
import type { EngineSettings } from './settings.js';
import type { StepJobs } from './step-jobs.js';

/** How long a runtime waits for running steps when it closes, in ms. */
const GRACE_MS = 5_000;

/** How long programs may take to come back with the engine, in ms. */
const COME_BACK_MS = 10_000;

export interface EngineProcessParts extends EngineParts {
  app: INestMicroservice;
  settings: EngineSettings;
  /** Undefined where steps do not go through the engine. */
  jobs: StepJobs | undefined;
  log: Log;
  report: (message: string, context: { [key: string]: unknown }) => void;
  /** The engine's address, for messages. */
  shownUrl: string;
}

/** The one process of an engine that runs turns. */
export class EngineProcess implements EmbeddedRuntime {
  readonly settings: SettingsSource;
  readonly vitals: Vitals;
  private readonly watch: ConfigurationWatch;
  private readonly hurry = new AbortController();
  private closing: Promise<void> | undefined;
  private readonly leave: (() => void)[] = [];
  private dropping: NodeJS.Timeout | undefined;

  private constructor(
    private readonly parts: EngineProcessParts,
    readonly dataDir: string,
  ) {
    const { app, store, turns, bus, configuration, log } = parts;
    this.settings = app.get<SettingsSource>(SETTINGS, { strict: false });
    this.vitals = new Vitals(store, dataDir, () => this.configurationFaults(), {
      dependencies: [{ name: 'engine', ping: () => checkOurs(bus) }],
      queue: turns.queue,
      parkedTurns: turns.parkedTurns,
    });
    this.watch = new ConfigurationWatch(configuration, { log: (level, message) => log(level, `configuration: ${message}`, {}) });
  }

  /** Takes the parts over: closes them when it cannot start. */
  static async start(parts: EngineProcessParts, options: OpenRuntimeOptions): Promise<EngineProcess> {
    const runtime = new EngineProcess(parts, options.dataDir);
    try {
      await options.prepare?.(runtime);
      await runtime.work();
      return runtime;
    } catch (error) {
      await runtime.close(0);
      throw error;
    }
  }

  get ended(): Promise<never> {
    return this.parts.standing.superseded;
  }

  get bus(): Bus {
    return this.parts.bus;
  }

  get feed(): LiveFeed {
    return this.parts.feed;
  }

  get gatewayUrl(): string {
    return this.parts.shownUrl;
  }

  get commits(): number {
    return this.parts.store.writer.commits;
  }

  secrets(): readonly string[] {
    return this.parts.configuration.secrets;
  }

  configurationFaults(): readonly string[] {
    return [...this.parts.configuration.faults.map(describeFault), ...this.parts.settings.faults];
  }

  turnOwner(sessionId: string): Promise<TurnOwner> {
    return this.parts.turns.queue.ownerOf(sessionId);
  }

  adopt(sessionId: string): Promise<boolean> {
    return this.parts.turns.queue.adopt(sessionId);
  }

  follow(sessionId: string, turnId: string, options: { signal?: AbortSignal; fromStart?: boolean } = {}): AsyncIterable<FeedEvent> {
    return followOverBus(this.bus, sessionId, turnId, options);
  }

  close(graceMs = GRACE_MS): Promise<void> {
    if (this.closing === undefined) this.closing = this.shutDown(graceMs);
    else setTimeout(() => this.hurry.abort(), graceMs).unref();
    return this.closing;
  }

  private async work(): Promise<void> {
    const { app, bus, store, turns, ours, settings, log } = this.parts;
    this.watch.start();
    app.get(PendingSweep, { strict: false }).start();
    this.leave.push(
      bus.connection.onLost(() => log('warn', 'the connection to the engine is lost; turns go on when it is back', {})),
      bus.connection.onBack(() => {
        this.dropLostLater();
        log('info', 'the connection to the engine is back', {});
        this.expectOthers();
        settings.registerLater();
        turns
          .restore()
          .catch((error: unknown) => log('warn', 'what the engine lost could not be written again', { error: errorMessage(error) }));
      }),
    );
    if (ours.has('queue')) await this.standInForQueue();
    this.forgetDeletedSessions();
    const executor = app.get(TurnExecutor, { strict: false });
    const ports = app.get<LoopPorts>(LOOP_PORTS, { strict: false });
    this.expectOthers();
    turns.prepare?.(ports);
    await turns.queue.start(async (payload) => {
      await executor.runStep(payload);
    }, 'all');
    store.delivery.recover((owner) => store.processes.hasEnded(owner, Date.now()));
    for (const sessionId of await turns.journal.stranded()) await takeLeftover(ports, sessionId);
  }

  /** Hooks and consumers that have not come back with the engine are bound no more, once they have had the time to. */
  private dropLostLater(): void {
    const { bus, report } = this.parts;
    clearTimeout(this.dropping);
    this.dropping = setTimeout(() => {
      bus.bound
        .dropLost(bus, report)
        .catch((error: unknown) => report('the bindings could not be looked at', { error: errorMessage(error) }));
    }, COME_BACK_MS).unref();
  }

  /** Programs of other processes come back a moment after this one, or after the engine. */
  private expectOthers(): void {
    const { app, store, ours } = this.parts;
    store.delivery.expectConsumers();
    if (ours.has('router')) app.get(ProviderRegistry, { strict: false }).expectProviders();
  }

  /** Where another worker keeps the sessions, what this one keeps of a session goes when that says so. */
  private forgetDeletedSessions(): void {
    const { bus, turns, report } = this.parts;
    const { forget } = turns;
    if (forget === undefined) return;
    const function_id = 'harness::on-session-deleted';
    bus.registerFunction({ id: function_id, description: 'Hears of deleted sessions.', metadata: { internal: true } }, async (payload) => {
      const { session_id } = payload as { session_id: string };
      await forget(session_id).catch((error: unknown) =>
        report('a deleted session is still known', { session_id, error: errorMessage(error) }),
      );
      return null;
    });
    bus.registerTrigger({ type: 'session::deleted', function_id, config: {} });
  }

  /** Takes enqueue actions in the place of a queue worker. */
  private async standInForQueue(): Promise<void> {
    const { bus, store } = this.parts;
    bus.registerFunction(
      { id: 'engine::queue::enqueue', description: 'Takes a call into a named queue.', metadata: { internal: true } },
      async (payload) => {
        const { queue, function_id, data } = payload as { queue: string; function_id: string; data: JsonValue };
        return { messageReceiptId: await store.jobs.enqueue({ queue, function_id, payload: data }) };
      },
    );
    await store.jobs.start(bus, 'all');
  }

  private async shutDown(graceMs: number): Promise<void> {
    const { app, bus, store, turns, standing, ours, jobs } = this.parts;
    clearTimeout(this.dropping);
    for (const leave of this.leave) leave();
    this.watch.stop();
    app.get(PendingSweep, { strict: false }).stop();
    jobs?.close();
    const { signal } = this.hurry;
    const ownJobs = ours.has('queue') ? store.jobs.stop(graceMs, signal) : Promise.resolve();
    await turns.queue.stop(graceMs, signal, ownJobs);
    turns.close();
    standing.close();
    if (ours.has('shell')) await app.get(ShellService, { strict: false }).stop();
    await store.delivery.settle(graceMs);
    await app.close();
    await bus.close();
    await closeStore(store);
  }
}
