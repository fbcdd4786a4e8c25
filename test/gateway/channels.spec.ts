import type { IIIClient } from 'iii-sdk';
import { createChannel } from 'iii-sdk/helpers';
import { describe, expect, it } from 'vitest';
import type { ProviderStreamRequest, StreamFrame } from '#libs/contracts';
import { textOf } from '#libs/contracts';
import type { TurnRig } from '../support/turn-rig.js';
import { connect, openWithGateway, synced, urlOf } from './remote.js';

type SdkChannel = Awaited<ReturnType<typeof createChannel>>;
type Writer = SdkChannel['writer'];

/** A provider of another program: streams what `play` writes. */
async function provider(client: IIIClient, play: (writer: Writer, request: ProviderStreamRequest) => Promise<void>): Promise<void> {
  client.registerFunction('provider::far::stream', async ({ writer_ref, ...request }: { writer_ref: Writer } & ProviderStreamRequest) => {
    await play(writer_ref, request as ProviderStreamRequest);
    return { ok: true };
  });
  const model = { id: 'far-1', provider: 'far', context_window: 100_000, max_output_tokens: 8_000, supports_tools: true };
  await client.trigger({ function_id: 'router::provider::register', payload: { id: 'far', display_name: 'Far', models: [model] } });
}
const send = (writer: Writer, ...frames: StreamFrame[]): void => {
  for (const frame of frames) writer.sendMessage(JSON.stringify(frame));
};
const done = (value: string): StreamFrame => ({
  type: 'done',
  message: {
    role: 'assistant',
    content: [{ type: 'text', text: value }],
    model: 'far-1',
    provider: 'far',
    stop_reason: 'end',
    timestamp: 1,
    usage: {},
  },
});
const FAR = { model: 'far-1', provider: 'far' };
const answers = async (rig: TurnRig, session_id: string): Promise<string[]> =>
  (await rig.entries(session_id)).flatMap((e) =>
    e.kind === 'message' && e.message.role === 'assistant' ? [textOf(e.message.content)] : [],
  );

describe('a provider over the gateway', () => {
  it('streams an answer over a channel', async () => {
    const rig = await openWithGateway();
    await provider(connect(urlOf(rig)), async (writer) => {
      send(writer, { type: 'start' }, { type: 'text_start' });
      for (const delta of ['far', ' ', 'away']) send(writer, { type: 'text_delta', delta });
      send(writer, { type: 'text_end' }, done('far away'));
      writer.close();
    });
    const { session_id, status } = await rig.turn('go', FAR);
    expect([status, await answers(rig, session_id)]).toEqual(['completed', ['far away']]);
    expect(rig.events.flatMap((event) => (event.type === 'text_delta' ? [event.delta] : [])).join('')).toBe('far away');
  });

  it('that is stopped sees its channel close', async () => {
    const rig = await openWithGateway();
    let closed: () => void = () => undefined;
    const cancelled = new Promise<void>((resolve) => {
      closed = resolve;
    });
    await provider(connect(urlOf(rig)), async (writer) => {
      send(writer, { type: 'start' }, { type: 'text_start' }, { type: 'text_delta', delta: 'I think' });
      await new Promise<void>((resolve) => writer.stream.on('close', resolve));
      closed();
    });
    const { session_id, turn_id } = await rig.send('go', FAR);
    await rig.seen('text', (event): event is Extract<typeof event, { type: 'text_delta' }> => event.type === 'text_delta');
    await rig.stop(session_id);
    await cancelled;
    expect((await rig.end(turn_id)).status).toBe('cancelled');
  });

  it('that goes away in the middle ends the generation with a failure that is told', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig), { reconnectionConfig: { maxRetries: 0 } });
    await provider(client, async (writer) => {
      send(writer, { type: 'start' }, { type: 'text_start' }, { type: 'text_delta', delta: 'I th' });
      await new Promise(() => undefined);
    });
    const { session_id, turn_id } = await rig.send('go', FAR);
    await rig.seen('text', (event): event is Extract<typeof event, { type: 'text_delta' }> => event.type === 'text_delta');
    (client as unknown as { ws: { terminate(): void } }).ws.terminate();
    expect((await rig.end(turn_id)).status).toBe('failed');
    expect(await answers(rig, session_id)).toEqual(['I th']);
  });
});

describe('channels of workers', () => {
  it('carry bytes and text between two programs as they are', async () => {
    const rig = await openWithGateway();
    const [one, two] = [connect(urlOf(rig)), connect(urlOf(rig))];
    const heard: string[] = [];
    two.registerFunction('two::read', async ({ reader }: { reader: SdkChannel['reader'] }) => {
      reader.onMessage((message) => heard.push(message));
      return { bytes: (await reader.readAll()).length };
    });
    await synced(two);
    const { writer, readerRef } = await createChannel(one);
    const read = one.trigger<unknown, { bytes: number }>({ function_id: 'two::read', payload: { reader: readerRef } });
    writer.sendMessage('{ "as": "it is", "big": 12345678901234567890 }');
    writer.sendMessage('not JSON');
    writer.stream.end(Buffer.alloc(300_000, 7));
    expect(await read).toEqual({ bytes: 300_000 });
    expect(heard).toEqual(['{ "as": "it is", "big": 12345678901234567890 }', 'not JSON']);
  });

  it('slow the writer down when nobody reads', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    const { writer, reader } = await createChannel(client, 4);
    const chunk = Buffer.alloc(64 * 1024, 1);
    const total = 64 * 1024 * 1024;
    let written = 0;
    const pump = (async () => {
      for (; written < total; written += chunk.length) {
        if (!writer.stream.write(chunk)) await new Promise((resolve) => writer.stream.once('drain', resolve));
      }
      writer.stream.end();
    })();
    let before = -1;
    while (before !== written) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(written).toBeLessThan(total / 2); // what fits into sockets and buffers, and no more
    expect((await reader.readAll()).length).toBe(total);
    await pump;
  });

  it('can be taken once at each end, and only with their key', async () => {
    const rig = await openWithGateway();
    const client = connect(urlOf(rig));
    const { readerRef, writerRef } = await createChannel(client);
    const open = async (key: string, dir: string, id = readerRef.channel_id): Promise<string> => {
      const { WebSocket } = await import('ws');
      const socket = new WebSocket(`${urlOf(rig)}/ws/channels/${id}?key=${key}&dir=${dir}`);
      return await new Promise((resolve) => {
        socket.on('open', () => resolve('open'));
        socket.on('error', (error) => resolve(error.message));
      });
    };
    expect(await open('wrong', 'read')).toMatch(/404/);
    expect(await open(readerRef.access_key, 'sideways')).toMatch(/400/);
    expect(await open(readerRef.access_key, 'read')).toBe('open');
    expect(await open(readerRef.access_key, 'read')).toMatch(/409/);
    expect(await open(writerRef.access_key, 'write', 'ch_none')).toMatch(/404/);
  });

  it('end with the worker that asked for them', async () => {
    const rig = await openWithGateway();
    const [one, two] = [connect(urlOf(rig)), connect(urlOf(rig))];
    const { readerRef } = await createChannel(one);
    two.registerFunction('two::drain', async ({ reader }: { reader: SdkChannel['reader'] }) => ({
      bytes: (await reader.readAll()).length,
    }));
    await synced(two);
    const read = rig.call('two::drain', { reader: readerRef });
    await one.shutdown();
    expect(await read).toEqual({ bytes: 0 });
  });
});
