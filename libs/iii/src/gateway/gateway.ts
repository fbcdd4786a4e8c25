import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { errorMessage } from '#libs/contracts';
import { BusError } from '../bus.js';
import type { FrameReader } from '../local/channels.js';
import type { LocalEngine } from '../local/engine.js';
import { isSameSecret } from '../secret.js';
import { type Admission, type Refusal, refusalOf } from './admission.js';
import { readInto, writeFrom } from './channel-socket.js';
import type { GatewayLimits } from './limits.js';
import { WorkerConnection } from './worker-connection.js';
import { WorkerSocket } from './worker-socket.js';

const CHANNELS = '/ws/channels/';
const TELEMETRY = '/otel';
/** Told on a raw socket when its handshake is there. */
const UPGRADED = 'harness:upgraded';
/** When the system asks a silent peer whether it is there, in ms. Workers are asked more often, by pings. */
const KEEP_ALIVE_MS = 30_000;
/** How long workers may take to answer that they have seen the end, in ms. */
const CLOSE_MS = 1_000;

/** Where a gateway listens, and who may connect. */
export interface GatewayOptions extends Admission {
  host: string;
  /** 0: a free one. */
  port: number;
  limits: GatewayLimits;
}

/** Puts a local engine behind the iii WebSocket protocol: workers, channels, and the place where telemetry goes. */
export class Gateway {
  private readonly http: Server;
  private readonly workers: WebSocketServer;
  private readonly channels: WebSocketServer;
  private readonly telemetry: WebSocketServer;
  private readonly connected = new Map<string, { worker: WorkerConnection; wire: WorkerSocket }>();
  private readonly ends = new Set<Promise<void>>();
  private closing = false;

  private constructor(
    private readonly engine: LocalEngine,
    private readonly options: GatewayOptions,
  ) {
    const { limits } = options;
    const sockets = (maxPayload: number): WebSocketServer => new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload });
    this.workers = sockets(limits.frame_bytes);
    this.channels = sockets(limits.frame_bytes);
    this.telemetry = sockets(Math.min(limits.frame_bytes, 1024 * 1024));
    this.http = createServer((_, response) => {
      response.writeHead(426, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
      response.end('This is the gateway of harness: it speaks the iii WebSocket protocol.\n');
    });
    this.http.headersTimeout = limits.handshake_ms;
    this.http.requestTimeout = limits.handshake_ms;
    this.http.maxConnections = 2 * (limits.connections + limits.channel_sockets);
    this.http.on('connection', (socket) => this.expectHandshake(socket));
    this.http.on('upgrade', (request, socket, head) => this.upgrade(request, socket, head));
  }

  /** Starts listening. Rejects with the error of the port when it cannot be had. */
  static async listen(engine: LocalEngine, options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(engine, options);
    await new Promise<void>((resolve, reject) => {
      gateway.http.once('error', reject);
      gateway.http.listen({ host: options.host, port: options.port, exclusive: true }, () => {
        gateway.http.off('error', reject);
        engine.isReachable = true;
        gateway.http.on('error', (error) => engine.report('the gateway has a fault', { error: error.message }));
        resolve();
      });
    });
    return gateway;
  }

  /** Address of the gateway, without a token. */
  get url(): string {
    const { address, port } = this.http.address() as AddressInfo;
    return `ws://${address.includes(':') ? `[${address}]` : address}:${port}`;
  }

  /** Ends all connections; workers connect again by themselves to what listens there next. Their guards stay. */
  async close(): Promise<void> {
    this.closing = true;
    this.engine.isReachable = false;
    const closed = new Promise<void>((resolve) => this.http.close(() => resolve()));
    for (const { wire } of [...this.connected.values()]) wire.close(1001, 'the gateway closes');
    const others = [...this.channels.clients, ...this.telemetry.clients];
    for (const socket of others) socket.close(1001, 'the gateway closes');
    const force = setTimeout(() => {
      for (const socket of [...others, ...this.workers.clients]) socket.terminate();
      this.http.closeAllConnections();
    }, CLOSE_MS);
    await closed;
    clearTimeout(force);
    await Promise.all(this.ends);
  }

  /** Drops a connection that does not say in time what it wants. */
  private expectHandshake(socket: Socket): void {
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const timer = setTimeout(() => socket.destroy(), this.options.limits.handshake_ms);
    timer.unref();
    const settle = (): void => clearTimeout(timer);
    socket.once('close', settle);
    socket.once(UPGRADED, settle);
  }

  private upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    socket.emit(UPGRADED);
    const answer = this.admit(request);
    if ('status' in answer) refuse(socket, answer);
    else answer.sockets.handleUpgrade(request, socket, head, answer.use);
  }

  private admit(request: IncomingMessage): Refusal | Admitted {
    const url = parsedUrl(request);
    if (url === null) return { status: 400, reason: 'the address is not valid' };
    if (this.closing) return { status: 503, reason: 'the gateway closes' };
    const { channels, telemetry, workers } = this;
    const { channel_sockets, connections } = this.options.limits;
    const refusal = refusalOf(request, this.options);
    // The SDK sends no header with a channel's socket, whose key is its right, nor where it sends telemetry, which goes nowhere.
    const needsToken = url.pathname !== TELEMETRY && !url.pathname.startsWith(CHANNELS);
    if (refusal !== null && (needsToken || refusal.status !== 401)) return refusal;
    if (url.pathname.startsWith(CHANNELS)) {
      return channels.clients.size < channel_sockets ? this.takeChannel(url) : full(`${channel_sockets} open ends of channels`);
    }
    if (url.pathname === TELEMETRY)
      return telemetry.clients.size < connections ? { sockets: telemetry, use: discard } : full(`${connections} senders of telemetry`);
    if (url.pathname !== '/') return { status: 404, reason: `there is nothing at ${url.pathname}` };
    return workers.clients.size < connections
      ? { sockets: workers, use: (client) => this.welcome(client) }
      : full(`${connections} workers`);
  }

  private welcome(client: WebSocket): void {
    const { engine, options } = this;
    const wire = new WorkerSocket(
      client,
      options.limits,
      {
        message: (message) => worker.receive(message),
        closed: (how) => this.ended(worker, how),
      },
      (message, context) => engine.report(message, { ...context, worker: worker.bus.worker.name }),
    );
    const worker = new WorkerConnection(engine, wire, options.limits, (id, token) => this.retire(id, token));
    this.connected.set(worker.id, { worker, wire });
  }

  private ended(worker: WorkerConnection, how: 'left' | 'lost'): void {
    this.connected.delete(worker.id);
    const end = worker.end(how).catch((error: unknown) => {
      this.engine.report('a worker that went away could not be told of', { error: errorMessage(error) });
    });
    this.ends.add(end);
    void end.then(() => this.ends.delete(end));
  }

  /** Ends the connection that a worker had before it connected anew. Ids can be listed by anybody, so the token must prove it. */
  private retire(workerId: string, token: string): void {
    const before = this.connected.get(workerId);
    if (before !== undefined && isSameSecret(before.worker.reattachToken, token)) before.wire.close(1012, 'connected anew');
  }

  /** Takes an end before its socket is there, so that of two sockets only one gets it. */
  private takeChannel({ pathname, searchParams }: URL): Refusal | Admitted {
    const [channel_id, access_key, direction] = [pathname.slice(CHANNELS.length), searchParams.get('key') ?? '', searchParams.get('dir')];
    const sockets = this.channels;
    try {
      switch (direction) {
        case 'write': {
          const writer = this.engine.channels.openWriter({ channel_id, access_key, direction });
          return { sockets, use: (client) => writeFrom(client, writer) };
        }
        case 'read': {
          const reader = this.engine.channels.openFrames({ channel_id, access_key, direction });
          return { sockets, use: (client) => this.readOut(client, reader) };
        }
        default:
          return { status: 400, reason: 'dir must be "read" or "write"' };
      }
    } catch (error) {
      return { status: error instanceof BusError && error.code === 'NOT_FOUND' ? 404 : 409, reason: errorMessage(error) };
    }
  }

  private readOut(client: WebSocket, reader: FrameReader): void {
    readInto(client, reader).catch((error: unknown) => {
      this.engine.report('a channel could not be read out', { error: errorMessage(error) });
      client.terminate();
    });
  }
}

/** A request that may become a connection. */
interface Admitted {
  sockets: WebSocketServer;
  use(client: WebSocket): void;
}

const full = (what: string): Refusal => ({ status: 503, reason: `there are ${what} already` });

/** Telemetry is let in, since workers send it by default, and goes nowhere. */
function discard(client: WebSocket): void {
  client.on('message', () => undefined);
  client.on('error', () => client.terminate());
}

function parsedUrl({ url }: IncomingMessage): URL | null {
  try {
    return new URL(url ?? '/', 'ws://gateway');
  } catch {
    return null;
  }
}

function refuse(socket: Duplex, { status, reason }: Refusal): void {
  const body = `${reason}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
