import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type DynamicModule, Module } from '@nestjs/common';
import { type Gateway, gatewaySettings, startGateway } from '#libs/iii';
import { CLOCK, systemClock } from '#libs/turn';
import { ConfigurationModule, LiveConfiguration } from '../../libs/local/src/configuration/index.js';
import { CronModule } from '../../libs/local/src/cron/index.js';
import { QueueModule } from '../../libs/local/src/queue/index.js';
import { RouterModule } from '../../libs/local/src/router/index.js';
import { GivenModule } from '../../libs/local/src/runtime/given.module.js';
import { isSessionEvent, SessionEvents, SessionsModule } from '../../libs/local/src/sessions/index.js';
import { StateModule } from '../../libs/local/src/state/index.js';
import { newDataDir, openTestStore, removeDataDir, type TestStore } from '../support/store.js';
import { startConfigurationWorker } from './configuration-worker.js';

/** There is no harness in it, so that one may come from outside. */
const LIMITS = { reserved: ['engine::'] };

/** The workers that a harness needs, as an engine of others would have them. */
function workersOf(dataDir: string): DynamicModule {
  @Module({})
  class EngineWorkers {}
  const configuration = new LiveConfiguration(join(dataDir, 'config'));
  const given = GivenModule.of([[CLOCK, systemClock]]);
  const own = [ConfigurationModule.forRoot({ configuration }), CronModule];
  return { module: EngineWorkers, imports: [given, ...own, SessionsModule, StateModule, QueueModule, RouterModule] };
}

/** An engine that everybody can have: ours behind its gateway, with every worker that a harness needs and no harness. */
export class EngineHost {
  private constructor(
    readonly host: TestStore,
    private gateway: Gateway,
  ) {}

  /** `runsJobs`: whether its queue hands out what it takes. */
  static async open({ runsJobs = true }: { runsJobs?: boolean } = {}): Promise<EngineHost> {
    const dataDir = newDataDir();
    mkdirSync(join(dataDir, 'config'));
    const host = await openTestStore([workersOf(dataDir) as never], dataDir);
    startConfigurationWorker(host.bus);
    const events = host.app.get(SessionEvents, { strict: false });
    events.publish();
    host.store.delivery.addListeners({
      wants: (type) => events.wants(type),
      deliver: async (event) => {
        if (isSessionEvent(event)) await events.deliver(event);
      },
    });
    host.engine.useQueue(host.store.jobs);
    if (runsJobs) await host.store.jobs.start(host.bus, 'all');
    return new EngineHost(host, await startGateway(host.engine, gatewaySettings({ HARNESS_GATEWAY_PORT: '0' }), LIMITS));
  }

  get url(): string {
    return this.gateway.url;
  }

  /** Cuts every connection and takes new ones at the same address, as an engine does that is started anew. */
  async restart(meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    const { port } = new URL(this.url);
    await this.gateway.close();
    await meanwhile();
    this.gateway = await startGateway(this.host.engine, gatewaySettings({ HARNESS_GATEWAY_PORT: port }), LIMITS);
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await this.host.store.jobs.stop(0);
    await this.host.close();
    removeDataDir(this.host.dataDir);
  }
}
