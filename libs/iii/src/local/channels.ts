import { randomUUID } from 'node:crypto';
import type { StreamChannelRef } from '#libs/contracts';
import { BusError, type Channel, type ChannelReader, type ChannelWriter } from '../bus.js';

const DEFAULT_BUFFER = 64;
const MAX_BUFFER = 1024;
/** An end that nobody took is dropped after this time. */
const UNTAKEN_MS = 5 * 60_000;

/** Why a writer's signal is aborted; one object, since making an error for each would cost more than the rest. */
const READER_CLOSED = new BusError('channel_closed', 'the reader has closed its end');

/** An in-process channel: values are handed over as they are, a full buffer slows the writer. */
class MemoryChannel {
  private buffer: unknown[] = [];
  private wakeReader: (() => void) | undefined;
  private wakeWriter: (() => void) | undefined;
  private drained: Promise<void> | undefined;
  private writerClosed = false;
  private readonly cancelled = new AbortController();

  constructor(
    private readonly limit: number,
    private readonly ended: () => void,
  ) {}

  readonly writer: ChannelWriter = this.makeWriter();
  readonly reader: ChannelReader = this.makeReader();

  private makeWriter(): ChannelWriter {
    return {
      signal: this.cancelled.signal,
      send: (message) => this.send(message),
      close: () => {
        if (this.writerClosed) return;
        this.writerClosed = true;
        this.wakeReader?.();
      },
    };
  }

  private makeReader(): ChannelReader {
    return {
      next: () => this.next(),
      close: () => {
        this.buffer = [];
        if (!this.writerClosed) this.cancelled.abort(READER_CLOSED);
        this.writerClosed = true;
        this.wakeReader?.();
        this.wakeWriter?.();
        this.ended();
      },
    };
  }

  private send(message: unknown): void | Promise<void> {
    if (this.writerClosed) return; // what is sent into a closed channel goes nowhere; the writer's signal says so
    this.buffer.push(message);
    this.wakeReader?.();
    if (this.buffer.length < this.limit) return;
    this.drained ??= new Promise((resolve) => {
      this.wakeWriter = resolve;
    });
    return this.drained;
  }

  private async next(): Promise<readonly unknown[] | null> {
    while (this.buffer.length === 0) {
      if (this.writerClosed) {
        this.ended();
        return null;
      }
      await new Promise<void>((resolve) => {
        this.wakeReader = resolve;
      });
      this.wakeReader = undefined;
    }
    const batch = this.buffer;
    this.buffer = [];
    this.drained = undefined;
    this.wakeWriter?.();
    this.wakeWriter = undefined;
    return batch;
  }
}

interface Slot {
  channel: MemoryChannel;
  key: string;
  taken: Set<'read' | 'write'>;
  sweep: NodeJS.Timeout;
}

/** The channels of a local engine, by id. Each end can be taken once by its reference. */
export class ChannelTable {
  private readonly slots = new Map<string, Slot>();

  create(bufferSize = DEFAULT_BUFFER): Channel {
    const channel_id = `ch_${randomUUID()}`;
    const key = randomUUID();
    const channel = new MemoryChannel(Math.min(Math.max(bufferSize, 1), MAX_BUFFER), () => this.drop(channel_id));
    const sweep = setTimeout(() => this.sweep(channel_id), UNTAKEN_MS);
    sweep.unref();
    this.slots.set(channel_id, { channel, key, taken: new Set(), sweep });
    const ref = (direction: 'read' | 'write'): StreamChannelRef => ({ channel_id, access_key: key, direction });
    return { writer: channel.writer, reader: channel.reader, writerRef: ref('write'), readerRef: ref('read') };
  }

  openWriter(ref: StreamChannelRef): ChannelWriter {
    return this.take(ref, 'write').writer;
  }

  openReader(ref: StreamChannelRef): ChannelReader {
    return this.take(ref, 'read').reader;
  }

  get size(): number {
    return this.slots.size;
  }

  private take(ref: StreamChannelRef, direction: 'read' | 'write'): MemoryChannel {
    const slot = this.slots.get(ref.channel_id);
    if (slot === undefined || slot.key !== ref.access_key) throw new BusError('NOT_FOUND', `no channel ${ref.channel_id}`);
    if (ref.direction !== direction) throw new BusError('INVALID_ARGUMENTS', `the reference is for the ${ref.direction} end`);
    if (slot.taken.has(direction)) throw new BusError('INVALID_ARGUMENTS', `the ${direction} end of ${ref.channel_id} is taken`);
    slot.taken.add(direction);
    return slot.channel;
  }

  private sweep(id: string): void {
    const slot = this.slots.get(id);
    if (slot !== undefined && slot.taken.size === 0) slot.channel.reader.close();
  }

  private drop(id: string): void {
    const slot = this.slots.get(id);
    if (slot === undefined) return;
    clearTimeout(slot.sweep);
    this.slots.delete(id);
  }
}
