import type { RawData, WebSocket } from 'ws';
import type { GatewayLimits } from './limits.js';
import { type EngineMessage, parseMessage, type WorkerMessage } from './messages.js';

/** Frames of telemetry, which a worker may send as bytes; there is no store for them here. */
const TELEMETRY = ['OTLP', 'MTRC', 'LOGS'];
/** Close codes of RFC 6455 that a peer sends when it leaves on purpose: normal, and none given. */
const LEAVING = [1000, 1005];
/** Unknown types of messages that a worker is told of, each once. */
const MAX_UNKNOWN = 32;

/** What the socket of a worker tells. */
export interface WorkerSocketEvents {
  message(message: WorkerMessage): void;
  /** `left` when the worker closed the connection itself, `lost` however else it ended. Told once. */
  closed(how: 'left' | 'lost'): void;
}

/** The socket of one worker: messages in, messages out, signs of life, and what a worker that misbehaves is told. */
export class WorkerSocket {
  private alive = true;
  private faults = 0;
  private ending = false;
  private over = false;
  private readonly unknown = new Set<string>();
  private readonly heartbeat: NodeJS.Timeout;

  constructor(
    private readonly socket: WebSocket,
    private readonly limits: GatewayLimits,
    private readonly events: WorkerSocketEvents,
    private readonly report: (message: string, context: { [key: string]: unknown }) => void,
  ) {
    socket.on('message', (data, isBinary) => this.receive(data, isBinary));
    socket.on('ping', () => this.seen());
    socket.on('pong', () => this.seen());
    socket.on('error', (error) => this.report('the connection of a worker failed', { error: error.message }));
    socket.on('close', (code) => this.end(!this.ending && LEAVING.includes(code) ? 'left' : 'lost'));
    this.heartbeat = setInterval(() => this.beat(), limits.ping_ms);
    this.heartbeat.unref();
  }

  /** Sends a message; false when it is gone because the connection is. A message that JSON cannot express throws. */
  send(message: EngineMessage): boolean {
    const frame = JSON.stringify(message);
    if (this.over || this.ending || this.socket.readyState !== this.socket.OPEN) return false;
    if (this.socket.bufferedAmount > this.limits.unread_bytes) {
      this.report('a worker does not read what it is sent and is dropped', { unread_bytes: this.socket.bufferedAmount });
      this.drop();
      return false;
    }
    this.socket.send(frame);
    return true;
  }

  /** Tells the worker what is wrong with what it sent; one that does not stop is dropped. */
  fault(code: string, message: string): void {
    this.faults += 1;
    this.send({ type: 'error', error: { code, message } });
    if (this.faults >= this.limits.faults) this.close(1008, 'too many messages that are not valid');
  }

  /** Ends the connection with a reason that the worker can read, and at once for this side. */
  close(code: number, reason: string): void {
    if (this.over) return;
    this.ending = true;
    this.socket.close(code, reason);
    const force = setTimeout(() => this.socket.terminate(), 1_000);
    force.unref();
    this.socket.once('close', () => clearTimeout(force));
    this.end('lost');
  }

  private drop(): void {
    this.ending = true;
    this.socket.terminate();
    this.end('lost');
  }

  private end(how: 'left' | 'lost'): void {
    if (this.over) return;
    this.over = true;
    clearInterval(this.heartbeat);
    this.events.closed(how);
  }

  private seen(): void {
    this.alive = true;
  }

  private beat(): void {
    if (!this.alive) {
      this.report('a worker gives no sign of life and is dropped', {});
      this.drop();
      return;
    }
    this.alive = false;
    if (this.socket.readyState === this.socket.OPEN) this.socket.ping();
  }

  private receive(data: RawData, isBinary: boolean): void {
    this.alive = true;
    if (this.over) return;
    const bytes = data as Buffer; // nodebuffer is the type that sockets of the gateway give
    if (isBinary && TELEMETRY.includes(bytes.toString('latin1', 0, 4))) return;
    const text = bytes.toString('utf8');
    if (text.trim() === '') return;
    const parsed = parseMessage(text);
    switch (parsed.kind) {
      case 'message':
        this.events.message(parsed.message);
        return;
      case 'malformed':
        this.fault('INVALID_ARGUMENTS', parsed.why);
        return;
      case 'unknown':
        this.tellUnknown(parsed.type.slice(0, 100));
        return;
      default:
        parsed satisfies never;
    }
  }

  private tellUnknown(type: string): void {
    if (this.unknown.has(type) || this.unknown.size >= MAX_UNKNOWN) return;
    this.unknown.add(type);
    this.send({
      type: 'error',
      error: { code: 'INVALID_ARGUMENTS', message: `messages of type ${JSON.stringify(type)} are not known here` },
    });
  }
}
