import { expect, it, onTestFinished } from 'vitest';
import { connectSdk, type TriggerRegistration } from '#libs/iii';
import { EngineHost } from './engine-host.js';

const PATIENCE = { timeout: 20_000, interval: 20 };

it('lets go of what has not come back with an engine, and keeps what has', async () => {
  const engine = await EngineHost.open();
  onTestFinished(async () => await engine.close());
  const connect = async (name: string) => {
    const bus = await connectSdk(engine.url, { name, log: () => undefined });
    onTestFinished(async () => await bus.close());
    return bus;
  };
  const [owner, faithful, fickle] = [await connect('owner'), await connect('faithful'), await connect('fickle')];
  const bound = new Map<string, TriggerRegistration>();
  owner.registerTriggerType(
    { id: 'own::type', description: 'A type of the test.' },
    { registerTrigger: (trigger) => void bound.set(trigger.id, trigger), unregisterTrigger: ({ id }) => void bound.delete(id) },
  );
  for (const [bus, id] of [
    [faithful, 'faithful::hear'],
    [fickle, 'fickle::hear'],
  ] as const) {
    bus.registerFunction({ id }, () => null);
    bus.registerTrigger({ type: 'own::type', function_id: id, config: {} });
  }
  const names = (): string[] => [...bound.values()].map(({ function_id }) => function_id).sort();
  await expect.poll(names, PATIENCE).toEqual(['faithful::hear', 'fickle::hear']);

  await engine.restart(() => fickle.close());
  const isThere = async (): Promise<boolean> =>
    await faithful.trigger({ function_id: 'faithful::hear', payload: {} }).then(
      () => true,
      () => false,
    );
  await expect.poll(isThere, PATIENCE).toBe(true);
  await expect.poll(() => owner.connection.isUp, PATIENCE).toBe(true);
  const reports: string[] = [];
  await expect
    .poll(async () => {
      await owner.bound.dropLost(owner, (message, { function_id }) => void reports.push(`${message}: ${String(function_id)}`));
      return names();
    }, PATIENCE)
    .toEqual(['faithful::hear']);
  expect(reports.at(-1)).toBe('a binding has not come back with the engine: fickle::hear');
});

it('ends a call with the connection that it went out on, also when it was made while there was none', async () => {
  const engine = await EngineHost.open();
  onTestFinished(async () => await engine.close());
  const bus = await connectSdk(engine.url, { name: 'caller', log: () => undefined });
  onTestFinished(async () => await bus.close());
  let asked = 0;
  engine.host.bus.registerFunction({ id: 'never::answers' }, () => {
    asked += 1;
    return new Promise(() => undefined);
  });
  const call = () => bus.trigger({ function_id: 'never::answers', payload: {}, timeoutMs: 600_000 });
  const first = call();
  await expect.poll(() => asked, PATIENCE).toBe(1);
  let second = Promise.resolve<unknown>(null);
  await engine.restart(async () => {
    await expect(first).rejects.toThrow('connection_lost: the connection to the engine was lost');
    second = call();
    second.catch(() => undefined);
  });
  await expect.poll(() => asked, PATIENCE).toBe(2);
  await engine.restart();
  await expect(second).rejects.toThrow('connection_lost');
});
