import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';

/** Where the gateway under attack is. */
export interface Target {
  host: string;
  port: number;
}

/** A peer of a gateway that may do anything: open and close as it likes, and send what no library would. */
export class Peer {
  private constructor(readonly socket: WebSocket) {}

  static async open({ host, port }: Target, path = '/'): Promise<Peer> {
    const socket = new WebSocket(`ws://${host}:${port}${path}`, { perMessageDeflate: false });
    socket.on('error', () => undefined);
    socket.on('message', () => undefined);
    await new Promise<void>((resolve) => socket.on('open', resolve).on('close', () => resolve()));
    return new Peer(socket);
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN;
  }

  /** Sends until the socket takes it, or is gone. */
  async send(data: string | Buffer): Promise<void> {
    if (this.isOpen) await new Promise<void>((resolve) => this.socket.send(data, () => resolve()));
  }

  json(message: unknown): Promise<void> {
    return this.send(JSON.stringify(message));
  }

  /** Resolves when the gateway has worked through what was sent, or has ended the connection. */
  async settled(): Promise<void> {
    if (!this.isOpen) return;
    this.socket.ping();
    await Promise.race([once(this.socket, 'pong'), once(this.socket, 'close')]);
  }

  /** The raw socket, for frames that no library sends. */
  get raw(): Socket {
    return (this.socket as unknown as { _socket: Socket })._socket;
  }

  cut(): void {
    this.socket.terminate();
  }
}

/** A TCP connection that has said nothing yet. */
export async function tcp({ host, port }: Target): Promise<Socket> {
  const socket = connect({ host, port });
  socket.on('error', () => undefined);
  socket.on('data', () => undefined);
  await new Promise<void>((resolve) => socket.on('connect', resolve).on('close', () => resolve()));
  return socket;
}

/** One masked frame with the opcode and bits of its first byte; `claimed` is the length that it says it has. */
export function frame(first: number, payload: Buffer, claimed = payload.length): Buffer {
  const length = Buffer.alloc(9);
  length[0] = 0x80 | 127;
  length.writeBigUInt64BE(BigInt(claimed), 1);
  return Buffer.concat([Buffer.from([first]), length, Buffer.alloc(4), payload]);
}
