import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { connectSdk } from './connect.js';

/** An engine that does nothing by itself; gives the connection of the worker, and the messages that come over it. */
async function silentEngine(): Promise<{ url: string; worker: Promise<WebSocket>; messages: { type: string; invocation_id?: string }[] }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  const messages: { type: string; invocation_id?: string }[] = [];
  const worker = new Promise<WebSocket>((resolve) => {
    server.on('connection', (socket) =>
      socket.on('message', (text: Buffer) => {
        messages.push(JSON.parse(text.toString()) as { type: string });
        resolve(socket);
      }),
    );
  });
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, worker, messages };
}

it('sends a result that comes at once again, since an engine may not have waited for it yet, and a later one once', async () => {
  const { url, worker, messages } = await silentEngine();
  const bus = await connectSdk(url, { name: 'quick', log: () => undefined });
  onTestFinished(async () => await bus.close());
  bus.registerFunction({ id: 'quick::one' }, () => ({ n: 1 }));
  let finish: (value: unknown) => void = () => undefined;
  bus.registerFunction({ id: 'slow::one' }, () => new Promise((resolve) => (finish = resolve)));
  const socket = await worker;
  const results = (id: string): number =>
    messages.filter((message) => message.type === 'invocationresult' && message.invocation_id === id).length;
  for (const [invocation_id, function_id] of [
    ['i-quick', 'quick::one'],
    ['i-slow', 'slow::one'],
  ])
    socket.send(JSON.stringify({ type: 'invokefunction', invocation_id, function_id, data: {} }));
  await expect.poll(() => results('i-quick'), { timeout: 10_000 }).toBe(3);
  finish({ n: 2 }); // the last repetition of the other one came later than this one would have to be
  await expect.poll(() => results('i-slow'), { timeout: 10_000 }).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect([results('i-quick'), results('i-slow')]).toEqual([3, 1]);
});
