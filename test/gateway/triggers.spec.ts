import { describe, expect, it, vi } from 'vitest';
import { connect, openWithGateway, synced, urlOf } from './remote.js';

const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
  for (let tries = 0; !(await isSo()); tries += 1) {
    if (tries > 500) throw new Error('it did not come to that');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

describe('triggers over the gateway', () => {
  it('a trigger type of one program is bound by others, fired, and tells of what it refuses', async () => {
    const rig = await openWithGateway();
    const [provider, consumer] = [connect(urlOf(rig)), connect(urlOf(rig))];
    const bound = new Map<string, { function_id: string; metadata?: unknown }>();
    provider.registerTriggerType(
      { id: 'bell::rings', description: 'A bell rings.' },
      {
        registerTrigger: async (trigger) => {
          if ((trigger.config as { tone?: string }).tone === undefined) throw new Error('a bell needs a tone');
          bound.set(trigger.id, trigger);
        },
        unregisterTrigger: async ({ id }) => void bound.delete(id),
      },
    );
    await synced(provider);
    const heard: unknown[] = [];
    consumer.registerFunction('ear::hear', async (event: unknown) => void heard.push(event));
    const binding = consumer.registerTrigger({ type: 'bell::rings', function_id: 'ear::hear', config: { tone: 'a' } });
    await until(() => bound.size === 1);
    for (const { function_id } of bound.values()) await provider.trigger({ function_id, payload: { ding: true } });
    expect(heard).toEqual([expect.objectContaining({ ding: true })]);
    binding.unregister();
    await until(() => bound.size === 0);

    const told = vi.spyOn(console, 'error');
    consumer.registerTrigger({ type: 'bell::rings', function_id: 'ear::hear', config: {} });
    await until(() => told.mock.calls.flat().some((line) => String(line).includes('a bell needs a tone')));
  });

  it('a binding waits for a type that is not there yet, and goes with the worker that made it', async () => {
    const rig = await openWithGateway();
    const [provider, consumer] = [connect(urlOf(rig)), connect(urlOf(rig))];
    consumer.registerTrigger({ type: 'late::type', function_id: 'x::y', config: {} });
    await synced(consumer);
    const events: string[] = [];
    provider.registerTriggerType(
      { id: 'late::type', description: 'Comes late.' },
      { registerTrigger: async () => void events.push('bound'), unregisterTrigger: async () => void events.push('unbound') },
    );
    await until(() => events.includes('bound'));
    await consumer.shutdown();
    await until(() => events.includes('unbound'));
  });

  it('discovery tells of remote workers, their functions and bindings', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig), { workerName: 'far-worker', workerDescription: 'It is far.' });
    client.registerFunction('far::do', async () => ({}), { description: 'Does it.', metadata: { tag: 1 } });
    client.registerTrigger({ type: 'harness::turn-started', function_id: 'far::do', config: {} });
    await synced(client);
    const workers = await rig.call<{ workers: { name: string; description?: string; pid?: number }[] }>('engine::workers::list');
    expect(workers.workers).toContainEqual(expect.objectContaining({ name: 'far-worker', description: 'It is far.', pid: process.pid }));
    expect(await rig.call('engine::functions::info', { function_id: 'far::do' })).toMatchObject({
      worker_name: 'far-worker',
      description: 'Does it.',
      registered_triggers: [{ trigger_type: 'harness::turn-started' }],
    });
    await client.shutdown();
    await until(async () => !JSON.stringify(await rig.call('engine::workers::list')).includes('far-worker'));
    await expect(rig.call('far::do')).rejects.toThrow(/function_not_found/);
  });

  it('a call has a limit of time, and what comes later is dropped', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    let answer: (value: unknown) => void = () => undefined;
    client.registerFunction('far::slow', async () => await new Promise((resolve) => (answer = resolve)));
    await synced(client);
    await expect(rig.runtime.bus.trigger({ function_id: 'far::slow', payload: {}, timeoutMs: 50 })).rejects.toThrow(/timeout/);
    answer('too late');
    await synced(client);
    client.registerFunction('far::quick', async () => 'in time');
    await synced(client);
    expect(await rig.call('far::quick')).toBe('in time');
  });
});
