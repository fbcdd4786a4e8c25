import { describe, expect, it } from 'vitest';
import type { ChannelReader } from '../bus.js';
import { LocalEngine } from './engine.js';

const bus = new LocalEngine().connect({ name: 'test' });
const opened = async (bufferSize?: number) => bus.createChannel(bufferSize === undefined ? {} : { bufferSize });

async function rest(reader: ChannelReader): Promise<unknown[]> {
  const all: unknown[] = [];
  for (let batch = await reader.next(); batch !== null; batch = await reader.next()) all.push(...batch);
  return all;
}

describe('channels', () => {
  it('hand over every message in order, as it is, then the end', async () => {
    const { writer, reader } = await opened(4);
    const message = { a: 1 };
    const reading = rest(reader);
    await writer.send(message);
    for (let n = 0; n < 100; n += 1) await writer.send(n);
    writer.close();
    const all = await reading;
    expect(all[0]).toBe(message);
    expect(all.slice(1)).toEqual(Array.from({ length: 100 }, (_, n) => n));
    expect(await reader.next()).toBeNull();
  });

  it('give what was sent before the writer closed, also to a reader that comes later', async () => {
    const { writerRef, readerRef } = await opened();
    const writer = bus.openWriter(writerRef);
    void writer.send('a');
    writer.close();
    writer.close();
    void writer.send('lost');
    expect(await rest(bus.openReader(readerRef))).toEqual(['a']);
  });

  it('give the end to a reader that comes after an empty stream has closed', async () => {
    const { writerRef, readerRef } = await opened();
    bus.openWriter(writerRef).close();
    expect(await rest(bus.openReader(readerRef))).toEqual([]);
  });

  it('hold a writer back when the reader is behind, and let it go on when it reads', async () => {
    const { writer, reader } = await opened(2);
    expect(writer.send(1)).toBeUndefined();
    const full = writer.send(2);
    expect(full).toBeInstanceOf(Promise);
    let released = false;
    const going = Promise.resolve(full).then(() => {
      released = true;
    });
    await Promise.resolve();
    expect(released).toBe(false);
    expect(await reader.next()).toEqual([1, 2]);
    await going;
    expect(writer.send(3)).toBeUndefined();
  });

  it('tell the writer when the reader closes: a cancel, which also lets a held writer go on', async () => {
    const { writer, reader } = await opened(1);
    const held = writer.send(1);
    expect(writer.signal.aborted).toBe(false);
    reader.close();
    reader.close();
    await held;
    expect(writer.signal.aborted).toBe(true);
    expect(writer.send(2)).toBeUndefined();
    expect(await reader.next()).toBeNull();
  });

  it('are not cancelled when the reader closes after the writer', async () => {
    const { writer, reader } = await opened();
    void writer.send(1);
    writer.close();
    reader.close();
    expect(writer.signal.aborted).toBe(false);
    expect(await reader.next()).toBeNull();
  });

  it('end a reader that waits when its own end is closed', async () => {
    const { reader } = await opened();
    const waiting = reader.next();
    reader.close();
    expect(await waiting).toBeNull();
  });

  it('give each end once, to who has its reference and key', async () => {
    const { writerRef, readerRef } = await opened();
    bus.openWriter(writerRef);
    expect(() => bus.openWriter(writerRef)).toThrow('is taken');
    expect(() => bus.openReader(writerRef)).toThrow('the reference is for the write end');
    expect(() => bus.openReader({ ...readerRef, access_key: 'guessed' })).toThrow('NOT_FOUND');
    expect(() => bus.openReader({ ...readerRef, channel_id: 'ch_none' })).toThrow('NOT_FOUND');
    bus.openReader(readerRef);
    expect(() => bus.openReader(readerRef)).toThrow('is taken');
  });

  it('are forgotten once both ends are through', async () => {
    const engine = new LocalEngine();
    const worker = engine.connect();
    const ended = await worker.createChannel();
    ended.writer.close();
    expect(await ended.reader.next()).toBeNull();
    const cancelled = await worker.createChannel();
    cancelled.reader.close();
    expect(engine.channels.size).toBe(0);
    expect(() => worker.openReader(ended.readerRef)).toThrow('NOT_FOUND');
  });

  it('are made over the bus too, with references to both ends', async () => {
    const made = await bus.trigger<{ writer: Parameters<typeof bus.openWriter>[0]; reader: Parameters<typeof bus.openReader>[0] }>({
      function_id: 'engine::channels::create',
      payload: { buffer_size: 1 },
    });
    expect([made.writer.direction, made.reader.direction]).toEqual(['write', 'read']);
    const writer = bus.openWriter(made.writer);
    void writer.send('x');
    writer.close();
    expect(await rest(bus.openReader(made.reader))).toEqual(['x']);
  });
});
