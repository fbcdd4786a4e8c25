import 'reflect-metadata';
import { join } from 'node:path';
import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { withoutPassword } from '#libs/contracts';
import { HookRegistry } from '#libs/hooks';
import { BusErrorFilter, IiiTransport } from '#libs/iii';
import { LiveFeed, LOOP_PORTS, type LoopPorts, TurnEvents } from '#libs/turn';
import { LiveConfiguration } from '../configuration/index.js';
import type { EmbeddedRuntime, OpenRuntimeOptions } from '../runtime/api.js';
import { announceProviders } from '../runtime/providers.js';
import { closeStore, openStore } from '../runtime/store.js';
import { listen, nestLogger } from '../runtime/wiring.js';
import { SessionEvents } from '../sessions/index.js';
import { EngineModule, type EngineParts } from './engine.module.js';
import { becomeOurs, refuseSecond } from './identity.js';
import { waitForNeeds } from './needs.js';
import { EngineProcess } from './process.js';
import { type Log, type Patience, reachEngine } from './reach.js';
import { EngineSettings } from './settings.js';
import { standIns, wantedSiblings } from './siblings.js';
import { Standing } from './standing.js';
import { StepJobs } from './step-jobs.js';
import { EngineStepQueue } from './step-queue.js';
import { ensureTurnQueue } from './turn-queue.js';
import { storeKindOf, turnStoreOf } from './turn-store.js';

/** How long calls that are still under way may take to end when the runtime closes, in ms. */
const DRAIN_MS = 1_000;

export interface OpenOnEngineOptions extends OpenRuntimeOptions {
  /** WebSocket address of the iii engine. */
  engineUrl: string;
  /** Where the records of turns are, as text of `HARNESS_STORE`; `sqlite` when absent. Throws `harness/invalid_setting`. */
  store?: string;
  /** Ends the waiting for what the worker depends on. */
  signal?: AbortSignal;
}

/**
 * Opens the worker of an iii engine. Waits, and says for what, until everything that a turn needs is there. Throws
 * `harness/duplicate` when the engine has a harness already, `harness/no_queue` when it takes no steps, `harness/stopped` when it was
 * told to end while it waited, and as `openRuntime` does for its data folder.
 */
export async function openOnEngine(options: OpenOnEngineOptions): Promise<EmbeddedRuntime> {
  const log: Log = options.log ?? (() => undefined);
  const patience: Patience = { log, signal: options.signal };
  const report = (message: string, context: { [key: string]: unknown }): void => log('warn', message, context);
  const kind = storeKindOf(options.store);
  const wanted = wantedSiblings(options.siblings);
  const configuration = new LiveConfiguration(join(options.dataDir, 'config'));
  const bus = await reachEngine(options.engineUrl, options.token, patience);
  const closing: (() => Promise<void>)[] = [() => bus.close()];
  try {
    await refuseSecond(bus, patience);
    const ours = await standIns(bus, wanted, log);
    await waitForNeeds(bus, ours, kind, patience);
    const store = await openStore({
      dataDir: options.dataDir,
      durability: configuration.current.harness.durability,
      concurrency: () => configuration.current.harness.concurrency,
      leaseMs: options.leaseMs,
      stepQueue: EngineStepQueue,
      traces: () => configuration.current.harness.trace_turns,
      ...(options.otlp === undefined ? {} : { otlp: options.otlp }),
      report,
    });
    closing.unshift(() => closeStore(store));
    const standing = new Standing(bus, log);
    closing.unshift(() => Promise.resolve(standing.close()));
    const turns = await turnStoreOf(bus, store, { kind, keepsSessions: ours.has('sessions'), configuration, standing, log });
    closing.unshift(() => Promise.resolve(turns.close()));
    log('info', turns.guarantee, {});
    const feed = new LiveFeed((error) => report('a watcher failed', { error: String(error) }));
    const parts = { bus, feed, store, turns, standing, configuration, ours };
    const settings = new EngineSettings(bus, configuration, log);
    const app = await NestFactory.createMicroservice(EngineModule.forRoot(parts), {
      strategy: new IiiTransport(bus, DRAIN_MS),
      logger: nestLogger(log),
      abortOnError: false,
    });
    closing.unshift(() => app.close());
    app.useGlobalFilters(new BusErrorFilter());
    await app.listen();
    await publish(app, parts);
    await becomeOurs(bus, patience);
    await settings.begin();
    const jobs = ours.has('queue') ? undefined : new StepJobs(bus, log);
    if (jobs !== undefined) await ensureTurnQueue(bus, configuration.current.harness.concurrency, patience);
    turns.queue.jobs = jobs;
    closing.length = 0;
    return await EngineProcess.start({ ...parts, app, settings, jobs, log, report, shownUrl: withoutPassword(options.engineUrl) }, options);
  } catch (error) {
    for (const close of closing) await close();
    throw error;
  }
}

/** Makes the loop, its events and what this worker stands in for known on the engine. */
async function publish(app: INestMicroservice, { bus, store, ours }: EngineParts): Promise<void> {
  const turnEvents = app.get(TurnEvents, { strict: false });
  const sessionEvents = ours.has('sessions') ? app.get(SessionEvents, { strict: false }) : undefined;
  turnEvents.publish();
  sessionEvents?.publish();
  app.get(HookRegistry, { strict: false }).publish();
  listen(store, app.get<LoopPorts>(LOOP_PORTS, { strict: false }), turnEvents, sessionEvents);
  if (ours.has('providers')) await announceProviders(app, bus, ours.has('router'));
}
