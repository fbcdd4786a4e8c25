import 'reflect-metadata';
import { join } from 'node:path';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { errorMessage } from '#libs/contracts';
import { HookRegistry } from '#libs/hooks';
import { type Bus, BusErrorFilter, type Gateway, IiiTransport, type LocalBus, LocalEngine } from '#libs/iii';
import {
  type FeedEvent,
  isClosedToModels,
  LiveFeed,
  LOOP_PORTS,
  type LoopPorts,
  SETTINGS,
  type SettingsSource,
  TurnEvents,
  TurnExecutor,
  takeLeftover,
} from '#libs/turn';
import { describeFault, LiveConfiguration } from '../configuration/index.js';
import { ServedBus } from '../remote/served-bus.js';
import { connectToWorker } from '../remote/worker.js';
import { ProviderRegistry } from '../router/index.js';
import { SessionEvents } from '../sessions/index.js';
import { ShellService } from '../shell/shell.service.js';
import type { EmbeddedRuntime, OpenRuntimeOptions, TurnOwner } from './api.js';
import { type Background, backgroundOf } from './background.js';
import { EmbeddedModule } from './embedded.module.js';
import { followTurn } from './follow.js';
import { openGateway } from './gateway.js';
import { announceProviders } from './providers.js';
import { type Sibling, siblingsOf } from './siblings.js';
import { closeStore, openStore, type Store } from './store.js';
import { Vitals } from './vitals.js';
import { listen, nestLogger } from './wiring.js';

/** How long a runtime waits for running steps when it closes, in ms. */
const GRACE_MS = 5_000;
/** How long calls that are still under way then may take to end, in ms. */
const DRAIN_MS = 1_000;

type Log = NonNullable<OpenRuntimeOptions['log']>;

/**
 * Opens the embedded runtime over a data folder. Throws `configuration/invalid`, `harness/store_unwritable`,
 * `harness/store_corrupt`, `harness/store_newer` or `harness/storage`.
 */
export async function openRuntime(options: OpenRuntimeOptions): Promise<EmbeddedRuntime> {
  const log: Log = options.log ?? (() => undefined);
  const report = (message: string, context: { [key: string]: unknown }): void => log('warn', message, context);
  const siblings = siblingsOf(options.siblings);
  const configuration = new LiveConfiguration(join(options.dataDir, 'config'));
  const store = await openStore({
    dataDir: options.dataDir,
    durability: configuration.current.harness.durability,
    concurrency: () => configuration.current.harness.concurrency,
    traces: () => configuration.current.harness.trace_turns,
    otlp: options.otlp === true && options.role !== 'reader',
    leaseMs: options.leaseMs,
    redisUrl: options.role === 'worker' ? options.redisUrl : undefined,
    report,
  });
  const closedToModels = (id: string): boolean => isClosedToModels(id, configuration.current.harness.lift_never);
  const engine = new LocalEngine({ report, closedToModels });
  const bus = engine.connect({ name: 'harness' });
  const feed = new LiveFeed((error) => report('a watcher failed', { error: String(error) }));
  let app: INestMicroservice | undefined;
  let background: Background | undefined;
  let gateway: Gateway | undefined;
  try {
    background = await backgroundOf(options.role, configuration, log);
    const { modules } = background;
    app = await NestFactory.createMicroservice(EmbeddedModule.forRoot({ bus, feed, store, configuration, siblings, modules }), {
      strategy: new IiiTransport(bus, DRAIN_MS),
      logger: nestLogger(log),
      abortOnError: false,
    });
    app.useGlobalFilters(new BusErrorFilter());
    await app.listen();
    const parts = { app, engine, bus, feed, store, configuration, siblings, background, report };
    await publish(parts);
    if (options.gateway !== undefined) {
      gateway = await openGateway(engine, store, options.gateway, log);
      if (siblings.has('router')) app.get(ProviderRegistry, { strict: false }).expectProviders();
    }
    return await EmbeddedProcess.start(options, { ...parts, gateway });
  } catch (error) {
    background?.stop();
    await gateway?.close();
    await app?.close();
    await closeStore(store);
    throw error;
  }
}

interface Parts {
  app: INestMicroservice;
  engine: LocalEngine;
  bus: LocalBus;
  feed: LiveFeed;
  store: Store;
  configuration: LiveConfiguration;
  siblings: ReadonlySet<Sibling>;
  background: Background;
  /** Undefined when workers of other processes cannot connect. */
  gateway?: Gateway | undefined;
  report: (message: string, context: { [key: string]: unknown }) => void;
}

class EmbeddedProcess implements EmbeddedRuntime {
  readonly dataDir: string;
  readonly settings: SettingsSource;
  readonly vitals: Vitals;
  private closing: Promise<void> | undefined;
  private readonly hurry = new AbortController();
  /** Leads to the worker that serves the folder, where this process is not one itself. */
  private readonly served: ServedBus | null;

  private constructor(
    options: OpenRuntimeOptions,
    private readonly parts: Parts,
  ) {
    const { role, token, log = () => undefined } = options;
    this.dataDir = options.dataDir;
    this.served = role === 'worker' ? null : new ServedBus(parts.bus, () => connectToWorker(parts.store.processes, token, log));
    this.settings = parts.app.get<SettingsSource>(SETTINGS, { strict: false });
    this.vitals = new Vitals(parts.store, options.dataDir, () => this.configurationFaults());
  }

  static async start(options: OpenRuntimeOptions, parts: Parts): Promise<EmbeddedProcess> {
    const runtime = new EmbeddedProcess(options, parts);
    await options.prepare?.(runtime);
    parts.background.start(parts.app, parts.bus);
    if (options.role !== 'reader') await runtime.work(options.role === 'worker' ? 'all' : 'own');
    return runtime;
  }

  get bus(): Bus {
    return this.served ?? this.parts.bus;
  }

  get feed(): LiveFeed {
    return this.parts.feed;
  }

  get gatewayUrl(): string | undefined {
    return this.parts.gateway?.url;
  }

  get commits(): number {
    return this.parts.store.writer.commits;
  }

  secrets(): readonly string[] {
    return this.parts.configuration.secrets;
  }

  configurationFaults(): readonly string[] {
    return this.parts.configuration.faults.map(describeFault);
  }

  turnOwner(sessionId: string): Promise<TurnOwner> {
    return this.parts.store.queue.ownerOf(sessionId);
  }

  adopt(sessionId: string): Promise<boolean> {
    return this.parts.store.queue.adopt(sessionId);
  }

  follow(sessionId: string, turnId: string, options: { signal?: AbortSignal; fromStart?: boolean } = {}): AsyncIterable<FeedEvent> {
    return followTurn(this.parts.store, sessionId, turnId, options);
  }

  close(graceMs = GRACE_MS): Promise<void> {
    if (this.closing === undefined) this.closing = this.shutDown(graceMs);
    else setTimeout(() => this.hurry.abort(), graceMs).unref();
    return this.closing;
  }

  private async work(scope: 'all' | 'own'): Promise<void> {
    const { app, engine, store } = this.parts;
    const executor = app.get(TurnExecutor, { strict: false });
    await store.queue.start(async (payload) => {
      takeOverGuards(engine, store);
      await executor.runStep(payload);
    }, scope);
    await store.jobs.start(this.parts.bus, scope);
    if (scope === 'own') return;
    store.delivery.recover((owner) => store.processes.hasEnded(owner, Date.now()));
    const ports = app.get<LoopPorts>(LOOP_PORTS, { strict: false });
    for (const sessionId of await store.journal.stranded()) await takeLeftover(ports, sessionId);
  }

  private async shutDown(graceMs: number): Promise<void> {
    const { app, store, siblings, background, report } = this.parts;
    await this.served?.close();
    background.stop();
    const { signal } = this.hurry;
    await store.queue.stop(graceMs, signal, store.jobs.stop(graceMs, signal));
    if (siblings.has('shell')) await app.get(ShellService, { strict: false }).stop();
    await store.delivery.settle(graceMs);
    await this.parts.gateway?.close();
    if (store.delivery.hasDelivered) {
      const noted = store.commits.run(() => undefined, 'outbox');
      await noted.catch((error: unknown) =>
        report('events are delivered again: it cannot be stored that they were', { error: errorMessage(error) }),
      );
    }
    await app.close();
    await closeStore(store);
  }
}

/** Makes the loop, its events and its providers known on the bus. */
async function publish({ app, bus, engine, store, siblings }: Parts): Promise<void> {
  engine.useQueue(store.jobs);
  const turnEvents = app.get(TurnEvents, { strict: false });
  const sessionEvents = app.get(SessionEvents, { strict: false });
  turnEvents.publish();
  sessionEvents.publish();
  app.get(HookRegistry, { strict: false }).publish();
  engine.triggers.keepGuards(store.guards);
  takeOverGuards(engine, store);
  listen(store, app.get<LoopPorts>(LOOP_PORTS, { strict: false }), turnEvents, sessionEvents);
  await announceProviders(app, bus, siblings.has('router'));
}

/** Brings the guards in force to what other processes have stored of them. */
function takeOverGuards(engine: LocalEngine, store: Store): void {
  const kept = store.guards.changes();
  if (kept !== null) engine.triggers.restore(kept, Date.now());
}
