import { randomUUID } from 'node:crypto';
import type { StreamChannelRef } from '#libs/contracts';
import { BusError, type Channel, type ChannelReader, type ChannelWriter } from '../bus.js';
import { isTooDeep } from '../depth.js';
import { isSameSecret } from '../secret.js';

const DEFAULT_BUFFER = 64;
const MAX_BUFFER = 1024;
/** How much of frames a reader may be behind, in bytes, however few they are. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** An end that nobody took is dropped after this time. */
const UNTAKEN_MS = 5 * 60_000;

/** Why a writer's signal is aborted; one object, since making an error for each would cost more than the rest. */
const READER_CLOSED = new BusError('channel_closed', 'the reader has closed its end');

/** A message that came over a socket, as it came: text, or bytes. A reader in another process gets just that. */
export class ChannelFrame {
  constructor(readonly data: string | Buffer) {}

  /** What a reader in this process gets: the value of JSON text, and anything else as it is. */
  get value(): unknown {
    if (typeof this.data !== 'string' || isTooDeep(this.data)) return this.data;
    try {
      return JSON.parse(this.data) as unknown;
    } catch {
      return this.data;
    }
  }
}

/** The read end of a channel for a socket: each message as text or bytes. */
export interface FrameReader {
  next(): Promise<readonly (string | Buffer)[] | null>;
  close(): void;
}

const decoded = (message: unknown): unknown => (message instanceof ChannelFrame ? message.value : message);
const encoded = (message: unknown): string | Buffer =>
  message instanceof ChannelFrame ? message.data : (JSON.stringify(message) ?? 'null');

/** An in-process channel: values are handed over as they are, a full buffer slows the writer. */
class MemoryChannel {
  private buffer: unknown[] = [];
  private frameBytes = 0;
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
      close: () => this.cancel(),
    };
  }

  readonly frames: FrameReader = {
    next: async () => (await this.take())?.map(encoded) ?? null,
    close: () => this.cancel(),
  };

  private cancel(): void {
    this.buffer = [];
    if (!this.writerClosed) this.cancelled.abort(READER_CLOSED);
    this.writerClosed = true;
    this.wakeReader?.();
    this.wakeWriter?.();
    this.ended();
  }

  private send(message: unknown): void | Promise<void> {
    if (this.writerClosed) return; // what is sent into a closed channel goes nowhere; the writer's signal says so
    this.buffer.push(message);
    if (message instanceof ChannelFrame) this.frameBytes += message.data.length;
    this.wakeReader?.();
    if (this.buffer.length < this.limit && this.frameBytes < MAX_FRAME_BYTES) return;
    this.drained ??= new Promise((resolve) => {
      this.wakeWriter = resolve;
    });
    return this.drained;
  }

  private async next(): Promise<readonly unknown[] | null> {
    const batch = await this.take();
    return batch === null || !batch.some((message) => message instanceof ChannelFrame) ? batch : batch.map(decoded);
  }

  private async take(): Promise<readonly unknown[] | null> {
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
    this.frameBytes = 0;
    this.drained = undefined;
    this.wakeWriter?.();
    this.wakeWriter = undefined;
    return batch;
  }
}

interface Slot {
  channel: MemoryChannel;
  key: string;
  /** The worker that asked for the channel; undefined for one made in this process, whose ends are in hand. */
  owner: string | undefined;
  taken: Set<'read' | 'write'>;
  sweep: NodeJS.Timeout;
}

/** The channels of a local engine, by id. Each end can be taken once by its reference. */
export class ChannelTable {
  private readonly slots = new Map<string, Slot>();

  /** `owner` is the worker that a channel is made for, whose ends both have to be taken; it goes when that worker does. */
  create(bufferSize = DEFAULT_BUFFER, owner?: string): Channel {
    const channel_id = `ch_${randomUUID()}`;
    const key = randomUUID();
    const channel = new MemoryChannel(Math.min(Math.max(bufferSize, 1), MAX_BUFFER), () => this.drop(channel_id));
    const sweep = setTimeout(() => this.sweep(channel_id), UNTAKEN_MS);
    sweep.unref();
    this.slots.set(channel_id, { channel, key, owner, taken: new Set(), sweep });
    const ref = (direction: 'read' | 'write'): StreamChannelRef => ({ channel_id, access_key: key, direction });
    return { writer: channel.writer, reader: channel.reader, writerRef: ref('write'), readerRef: ref('read') };
  }

  openWriter(ref: StreamChannelRef): ChannelWriter {
    return this.take(ref, 'write').writer;
  }

  openReader(ref: StreamChannelRef): ChannelReader {
    return this.take(ref, 'read').reader;
  }

  openFrames(ref: StreamChannelRef): FrameReader {
    return this.take(ref, 'read').frames;
  }

  /** Ends the channels that were made for a worker. */
  removeOf(owner: string): void {
    for (const slot of [...this.slots.values()]) if (slot.owner === owner) slot.channel.reader.close();
  }

  countOf(owner: string): number {
    return [...this.slots.values()].filter((slot) => slot.owner === owner).length;
  }

  get size(): number {
    return this.slots.size;
  }

  private take(ref: StreamChannelRef, direction: 'read' | 'write'): MemoryChannel {
    const slot = this.slots.get(ref.channel_id);
    if (slot === undefined || !isSameSecret(slot.key, ref.access_key)) throw new BusError('NOT_FOUND', `no channel ${ref.channel_id}`);
    if (ref.direction !== direction) throw new BusError('INVALID_ARGUMENTS', `the reference is for the ${ref.direction} end`);
    if (slot.taken.has(direction)) throw new BusError('INVALID_ARGUMENTS', `the ${direction} end of ${ref.channel_id} is taken`);
    slot.taken.add(direction);
    return slot.channel;
  }

  private sweep(id: string): void {
    const slot = this.slots.get(id);
    if (slot !== undefined && slot.taken.size < (slot.owner === undefined ? 1 : 2)) slot.channel.reader.close();
  }

  private drop(id: string): void {
    const slot = this.slots.get(id);
    if (slot === undefined) return;
    clearTimeout(slot.sweep);
    this.slots.delete(id);
  }
}
