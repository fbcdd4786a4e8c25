import { connectSdk, type Gateway, gatewaySettings, LocalBus, LocalEngine, startGateway } from '#libs/iii';
import { SdkBus } from '../../libs/iii/src/sdk/bus.js';
import { ServedBus } from '../../libs/local/src/remote/served-bus.js';
import { TracedBus } from '../../libs/turn/src/tracing/traced-bus.js';
import { busConformance } from './bus.js';

const gatewayOf = (engine: LocalEngine): Promise<Gateway> => startGateway(engine, gatewaySettings({ HARNESS_GATEWAY_PORT: '0' }));

busConformance({
  name: 'the local engine, in process',
  covers: [LocalBus],
  open: () => {
    const engine = new LocalEngine();
    const [a, b] = [engine.connect({ name: 'a' }), engine.connect({ name: 'b' })];
    return Promise.resolve({
      a,
      b,
      close: async () => {
        await Promise.all([a.disconnect(), b.disconnect()]);
      },
    });
  },
});

busConformance({
  name: 'the local engine, with the trace in force on each call',
  covers: [LocalBus, TracedBus],
  open: () => {
    const engine = new LocalEngine();
    const [a, own] = [engine.connect({ name: 'a' }), engine.connect({ name: 'b' })];
    const b = new TracedBus(own, () => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
    return Promise.resolve({
      a,
      b,
      close: async () => {
        await Promise.all([a.disconnect(), own.disconnect()]);
      },
    });
  },
});

busConformance({
  name: 'the gateway, by iii-sdk',
  covers: [SdkBus],
  open: async () => {
    const gateway = await gatewayOf(new LocalEngine());
    const [a, b] = await Promise.all([connectSdk(gateway.url, { name: 'a' }), connectSdk(gateway.url, { name: 'b' })]);
    return {
      a,
      b,
      close: async () => {
        await Promise.all([a.close(), b.close()]);
        await gateway.close();
      },
    };
  },
});

busConformance({
  name: 'the gateway, from this process to another worker',
  covers: [LocalBus, SdkBus],
  open: async () => {
    const engine = new LocalEngine();
    const gateway = await gatewayOf(engine);
    const a = engine.connect({ name: 'a' });
    const b = await connectSdk(gateway.url, { name: 'b' });
    return {
      a,
      b,
      close: async () => {
        await b.close();
        await a.disconnect();
        await gateway.close();
      },
    };
  },
});

busConformance({
  name: 'a process on a served folder, to the worker that serves it',
  covers: [LocalBus, ServedBus],
  // What such a process registers is for its own engine, which nobody else calls.
  without: 'offers',
  open: async () => {
    const engine = new LocalEngine();
    const gateway = await gatewayOf(engine);
    const a = engine.connect({ name: 'a' });
    const own = new LocalEngine().connect({ name: 'own' });
    const b = new ServedBus(own, () => connectSdk(gateway.url, { name: 'b' }));
    return {
      a,
      b,
      close: async () => {
        await b.close();
        await own.disconnect();
        await a.disconnect();
        await gateway.close();
      },
    };
  },
});
