import type { WebSocket } from 'ws';
import type { ChannelWriter } from '../bus.js';
import { ChannelFrame, type FrameReader } from '../local/channels.js';

/** How much may wait in a socket before the next message is taken from the channel, in bytes. */
const HIGH_WATER = 256 * 1024;

/** Feeds a channel from a worker's socket. A reader that is behind stops the socket, and with it the worker. */
export function writeFrom(socket: WebSocket, writer: ChannelWriter): void {
  socket.on('message', (data, isBinary) => {
    const bytes = data as Buffer; // nodebuffer is the type that sockets of the gateway give
    const behind = writer.send(new ChannelFrame(isBinary ? bytes : bytes.toString('utf8')));
    if (behind === undefined) return;
    socket.pause();
    void behind.then(() => socket.resume());
  });
  socket.on('close', () => writer.close());
  socket.on('error', () => socket.terminate());
  writer.signal.addEventListener('abort', () => socket.close(1000, 'the reader has closed'), { once: true });
  if (writer.signal.aborted) socket.close(1000, 'the reader has closed');
}

/** Gives a channel to a worker's socket, as fast as the worker reads. A worker that closes before the end cancels the writer. */
export async function readInto(socket: WebSocket, reader: FrameReader): Promise<void> {
  socket.on('message', () => undefined); // a reader has nothing to say
  socket.on('close', () => reader.close());
  socket.on('error', () => socket.terminate());
  for (let batch = await reader.next(); batch !== null; batch = await reader.next()) {
    for (const frame of batch) {
      const sent = new Promise<void>((resolve) => socket.send(frame, () => resolve()));
      if (socket.bufferedAmount > HIGH_WATER) await sent;
      if (socket.readyState !== socket.OPEN) return reader.close();
    }
  }
  socket.close(1000, 'the writer has closed');
}
