import { connectSdk, gatewaySettings, LocalEngine, startGateway } from '#libs/iii';
import { busConformance } from './bus.js';

busConformance('the local engine, in process', () => {
  const engine = new LocalEngine();
  const [a, b] = [engine.connect({ name: 'a' }), engine.connect({ name: 'b' })];
  return Promise.resolve({
    a,
    b,
    close: async () => {
      await Promise.all([a.disconnect(), b.disconnect()]);
    },
  });
});

busConformance('the gateway, by iii-sdk', async () => {
  const engine = new LocalEngine();
  const gateway = await startGateway(engine, gatewaySettings({ HARNESS_GATEWAY_PORT: '0' }));
  const [a, b] = await Promise.all([connectSdk(gateway.url, { name: 'a' }), connectSdk(gateway.url, { name: 'b' })]);
  return {
    a,
    b,
    close: async () => {
      await Promise.all([a.close(), b.close()]);
      await gateway.close();
    },
  };
});

busConformance('the gateway, from this process to another worker', async () => {
  const engine = new LocalEngine();
  const gateway = await startGateway(engine, gatewaySettings({ HARNESS_GATEWAY_PORT: '0' }));
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
});
