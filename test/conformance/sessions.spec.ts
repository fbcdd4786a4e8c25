import { connectSdk, gatewaySettings, startGateway } from '#libs/iii';
import { isSessionEvent, SessionEvents } from '../../libs/local/src/sessions/events.js';
import { SessionsModule } from '../../libs/local/src/sessions/sessions.module.js';
import { openTestStore, removeDataDir, type TestStore } from '../support/store.js';
import { sessionsConformance } from './sessions.js';

/** Our session store, with its events delivered as the runtime does. */
async function openSessions(): Promise<TestStore> {
  const opened = await openTestStore([SessionsModule]);
  const events = opened.app.get(SessionEvents, { strict: false });
  events.publish();
  opened.store.delivery.addListeners({
    wants: (type) => events.wants(type),
    deliver: (event) => (isSessionEvent(event) ? events.deliver(event) : Promise.resolve()),
  });
  return opened;
}

async function close(opened: TestStore): Promise<void> {
  await opened.store.delivery.settle(1_000);
  await opened.close();
  removeDataDir(opened.dataDir);
}

sessionsConformance('SQLite, in process', async () => {
  const opened = await openSessions();
  return { bus: opened.bus, close: async () => await close(opened) };
});

sessionsConformance('SQLite, over the gateway', async () => {
  const opened = await openSessions();
  const gateway = await startGateway(opened.engine, gatewaySettings({ HARNESS_GATEWAY_PORT: '0' }));
  const bus = await connectSdk(gateway.url, { name: 'conformance' });
  return {
    bus,
    close: async () => {
      await bus.close();
      await gateway.close();
      await close(opened);
    },
  };
});
