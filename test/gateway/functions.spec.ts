import { TriggerAction } from 'iii-sdk';
import { describe, expect, it } from 'vitest';
import type { SendResponse } from '#libs/contracts';
import { ScriptedModel, text } from '../support/scripted-model.js';
import { says } from '../support/scripts.js';
import { connect, openWithGateway, synced, urlOf } from './remote.js';

describe('functions over the gateway', () => {
  it('a program with the iii-sdk calls harness::send, and its errors have their codes', async () => {
    const rig = await openWithGateway({ model: new ScriptedModel(says('hello')) });
    const client = connect(urlOf(rig));
    const sent = await client.trigger<unknown, SendResponse>({
      function_id: 'harness::send',
      payload: { message: { role: 'user', content: [text('hi')], timestamp: 1 }, model: 'scripted-1', provider: 'scripted' },
    });
    expect((await rig.end(sent.turn_id)).status).toBe('completed');
    const wrong = client.trigger({ function_id: 'harness::send', payload: { massage: 'hi' } });
    await expect(wrong).rejects.toMatchObject({
      code: 'invocation_failed',
      message: expect.stringContaining('harness/invalid_request: ') as string,
    });
    await expect(client.trigger({ function_id: 'no::such', payload: {} })).rejects.toMatchObject({ code: 'function_not_found' });
  });

  it('its functions are called with payload, metadata and the id of who calls, and give results and errors', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    client.registerFunction('remote::echo', async (payload: unknown, metadata: unknown) => ({ payload, metadata }));
    client.registerFunction('remote::fail', async () => {
      throw new Error('remote/broken: the thing is broken');
    });
    await synced(client);
    const metadata = { agent: { session_id: 's_1', turn_id: 't_1', depth: 0 }, tag: 7 };
    const echoed = await rig.call<{ payload: object; metadata: unknown }>('remote::echo', { a: [1, { b: null }] }, metadata);
    expect(echoed).toEqual({ payload: { a: [1, { b: null }], _caller_worker_id: expect.any(String) as string }, metadata });
    await expect(rig.call('remote::fail')).rejects.toThrow('remote/broken: the thing is broken');
  });

  it('many calls go side by side in both directions, and nothing warns of them', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warn);
    client.registerFunction('remote::wait', async (payload: { n: number }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return payload.n;
    });
    await synced(client);
    const numbers = Array.from({ length: 500 }, (_, n) => n);
    const answers = numbers.map((n) => client.trigger<unknown, number>({ function_id: 'remote::wait', payload: { n } }));
    expect(await Promise.all(answers)).toEqual(numbers);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', warn);
    expect(warnings).toEqual([]);
  });

  it('void calls give nothing, queued ones a receipt', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    const got: unknown[] = [];
    const twice = new Promise<void>((resolve) => {
      client.registerFunction('remote::note', async (payload: { n: number }) => {
        got.push(payload.n);
        if (got.length === 2) resolve();
        return {};
      });
    });
    await client.trigger({ function_id: 'queue::define', payload: { queue: 'notes', config: { type: 'standard' } } });
    expect(await client.trigger({ function_id: 'remote::note', payload: { n: 1 }, action: TriggerAction.Void() })).toBeUndefined();
    const receipt = await client.trigger({
      function_id: 'remote::note',
      payload: { n: 1 },
      action: TriggerAction.Enqueue({ queue: 'notes' }),
    });
    expect(receipt).toEqual({ messageReceiptId: expect.any(String) as string });
    await twice;
    expect(got).toEqual([1, 1]);
  });
});
