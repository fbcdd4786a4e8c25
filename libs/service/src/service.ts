import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { TerminusModule } from '@nestjs/terminus';
import { HarnessError } from '#libs/contracts';
import type { Vitals } from '#libs/local';
import type { LiveFeed } from '#libs/turn';
import { HealthController } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';
import { Metrics } from './metrics.js';
import type { ServiceSettings } from './settings.js';
import { VITALS } from './vitals.js';

/** A service that listens. */
export interface Service {
  /** E.g. `http://127.0.0.1:3117`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Health and metrics of a worker over HTTP. The default port being busy makes it take a free one; else throws `service/port_unavailable`. */
export async function listen(vitals: Vitals, feed: LiveFeed, settings: ServiceSettings): Promise<Service> {
  const metrics = new Metrics(vitals);

  @Module({
    imports: [TerminusModule.forRoot({ logger: false })],
    controllers: [HealthController, MetricsController],
    providers: [
      { provide: VITALS, useValue: vitals },
      { provide: Metrics, useValue: metrics },
    ],
  })
  class ServiceModule {}

  const app = await NestFactory.create<NestExpressApplication>(ServiceModule, { logger: false, abortOnError: false });
  app.disable('x-powered-by');
  const { host, port } = settings;
  try {
    await app.listen(port, host).catch(async (error: unknown) => {
      if (!settings.any_port || codeOf(error) !== 'EADDRINUSE') throw error;
      await app.listen(0, host);
    });
  } catch (error) {
    await app.close();
    const code = codeOf(error);
    if (code === undefined) throw error;
    const detail = `health and metrics cannot be served on ${host}, port ${port} (${code}). Choose others with HARNESS_HTTP_PORT (0: any free one, off: none) and HARNESS_HTTP_HOST`;
    throw new HarnessError('service/port_unavailable', detail, { cause: error });
  }
  const unfollow = metrics.follow(feed);
  return {
    url: await app.getUrl(),
    close: async () => {
      unfollow();
      await app.close();
    },
  };
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;
