import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BUS, BusErrorFilter, connectSdk, IiiTransport } from '#libs/iii';
import { GivenModule, partsOf } from '../../libs/local/src/runtime/given.module.js';
import { closeStore, openStore } from '../../libs/local/src/runtime/store.js';
import { isSessionEvent, SessionEvents, SessionsModule } from '../../libs/local/src/sessions/index.js';

@Module({})
class SessionWorkerModule {}

/** A worker of an engine that keeps sessions and does nothing else, as one of somebody else's would; it goes on while a harness dies. */
export async function startSessionWorker(url: string, dataDir: string): Promise<{ close(): Promise<void> }> {
  const store = await openStore({ dataDir, durability: 'power', concurrency: () => 1, report: () => undefined });
  const bus = await connectSdk(url, { name: `sessions:${process.pid}`, log: () => undefined });
  const imports = [GivenModule.of([[BUS, bus], ...partsOf(store)]), SessionsModule];
  const app = await NestFactory.createMicroservice(
    { module: SessionWorkerModule, imports },
    { strategy: new IiiTransport(bus), logger: false },
  );
  app.useGlobalFilters(new BusErrorFilter());
  await app.listen();
  const events = app.get(SessionEvents, { strict: false });
  events.publish();
  store.delivery.addListeners({
    wants: (type) => events.wants(type),
    deliver: async (event) => {
      if (isSessionEvent(event)) await events.deliver(event);
    },
  });
  return {
    close: async () => {
      await app.close();
      await bus.close();
      await closeStore(store);
    },
  };
}
