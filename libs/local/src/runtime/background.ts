import type { DynamicModule, INestMicroservice, Type } from '@nestjs/common';
import type { Bus } from '#libs/iii';
import { ConfigurationWatch, type LiveConfiguration } from '../configuration/index.js';
import type { OpenRuntimeOptions, RuntimeRole } from './api.js';

/** What a process that runs turns does besides: it keeps its configuration up to date, and sweeps pending calls. */
export interface Background {
  /** To be imported into the application. */
  modules: (Type | DynamicModule)[];
  start(app: INestMicroservice, bus: Bus): void;
  stop(): void;
}

/** The background work of a role; a reader has none, and does not load what it takes. */
export async function backgroundOf(
  role: RuntimeRole,
  configuration: LiveConfiguration,
  log: NonNullable<OpenRuntimeOptions['log']>,
): Promise<Background> {
  if (role === 'reader') return { modules: [], start: () => undefined, stop: () => undefined };
  const { CronModule, PendingSweep } = await import('../cron/index.js');
  const watch = new ConfigurationWatch(configuration, { log: (level, message) => log(level, `configuration: ${message}`, {}) });
  let stopSweep = (): void => undefined;
  return {
    modules: [CronModule],
    start(app, bus) {
      bus.registerTrigger({ type: 'configuration', function_id: 'harness::on-config-change', config: { configuration_id: 'harness' } });
      watch.start();
      const sweep = app.get(PendingSweep, { strict: false });
      sweep.start();
      stopSweep = () => sweep.stop();
    },
    stop() {
      watch.stop();
      stopSweep();
    },
  };
}
