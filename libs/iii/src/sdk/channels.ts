import { WebSocket } from 'ws';
import type { StreamChannelRef } from '#libs/contracts';
import { BusError, type ChannelReader, type ChannelWriter } from '../bus.js';

/** Bytes that a writer may have on its way before `send` asks to wait. */
const HIGH_WATER_BYTES = 256 * 1024;
/** Messages that a reader may be behind before its socket is paused. */
const HIGH_WATER_MESSAGES = 256;
const HANDSHAKE_MS = 10_000;
/** How long the other side has to answer that an end is closed, in ms. */
const LEAVE_MS = 250;

const READER_CLOSED = new BusError('channel_closed', 'the reader has closed its end');

function open(base: string, { channel_id, access_key }: StreamChannelRef, end: 'read' | 'write'): WebSocket {
  const url = new URL(`${base.replace(/\/$/, '')}/ws/channels/${encodeURIComponent(channel_id)}`);
  url.searchParams.set('key', access_key);
  url.searchParams.set('dir', end);
  return new WebSocket(url, { handshakeTimeout: HANDSHAKE_MS, perMessageDeflate: false });
}

/** The write end of a channel of the engine at `base`. Its signal is aborted when the socket goes before it was closed. */
export function socketWriter(base: string, ref: StreamChannelRef): ChannelWriter {
  const socket = open(base, ref, 'write');
  const gone = new AbortController();
  const early: string[] = [];
  let closed = false;
  let drained: Promise<void> | null = null;
  let wake: () => void = () => undefined;
  const settle = (): void => {
    if (socket.bufferedAmount > HIGH_WATER_BYTES / 2 && socket.readyState === WebSocket.OPEN) return;
    wake();
    drained = null;
  };
  socket.on('open', () => {
    for (const text of early.splice(0)) socket.send(text, settle);
    if (closed) socket.close(1000);
    settle();
  });
  socket.on('error', () => undefined); // a socket that fails closes, and that is told
  socket.on('close', () => {
    if (!closed) gone.abort(READER_CLOSED);
    closed = true;
    settle();
  });
  return {
    signal: gone.signal,
    send: (message) => {
      if (closed) return;
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.CONNECTING) early.push(text);
      else socket.send(text, settle);
      if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount <= HIGH_WATER_BYTES) return;
      drained ??= new Promise((resolve) => {
        wake = resolve;
      });
      return drained;
    },
    close: () => {
      if (closed) return;
      closed = true;
      if (socket.readyState === WebSocket.OPEN) socket.close(1000);
    },
  };
}

/** The read end of a channel of the engine at `base`. Closing it is how a consumer cancels. */
export function socketReader(base: string, ref: StreamChannelRef): ChannelReader {
  const socket = open(base, ref, 'read');
  let buffer: unknown[] = [];
  let ended = false;
  let wake: (() => void) | undefined;
  socket.on('message', (data, isBinary) => {
    if (isBinary) return; // bytes are for readers of files; messages are text
    buffer.push(messageOf((data as Buffer).toString('utf8')));
    if (buffer.length >= HIGH_WATER_MESSAGES) socket.pause();
    wake?.();
  });
  socket.on('error', () => undefined); // a socket that fails closes, and that ends the stream
  socket.on('close', () => {
    ended = true;
    wake?.();
  });
  return {
    next: async () => {
      while (buffer.length === 0) {
        if (ended) return null;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      const batch = buffer;
      buffer = [];
      if (socket.isPaused) socket.resume();
      return batch;
    },
    close: () => {
      buffer = [];
      ended = true;
      wake?.();
      leave(socket);
    },
  };
}

/** Closes a read end. An engine that only sends on it does not see that it is closed, but it does see that it is gone. */
function leave(socket: WebSocket): void {
  socket.close(1000);
  const gone = setTimeout(() => socket.terminate(), LEAVE_MS).unref();
  socket.once('close', () => clearTimeout(gone));
}

/** What a writer of another kind sends that is not JSON is taken as the text that it is. */
function messageOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
