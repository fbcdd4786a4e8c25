import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { bodyViolation } from './vendor-schemas.js';

/** One server-sent event as a vendor sends it; `data` is JSON or text. A `comment` becomes a line of its own. */
export interface SseEvent {
  event?: string;
  data?: unknown;
  comment?: string;
}

/** What the server answers to one request. */
export interface VendorAnswer {
  status?: number;
  headers?: { [name: string]: string };
  /** Sent as JSON (or as it is when it is text). */
  body?: unknown;
  events?: readonly SseEvent[];
  /** `bytes`: one byte per write. `split`: that many bytes per write. Default: all at once. */
  delivery?: 'whole' | 'bytes' | { split: number };
  /** Line ends; vendors send `\n`, proxies sometimes `\r\n`. */
  newline?: '\n' | '\r\n';
  /** After the last event: end the body (default), keep it open for ever, or break the connection. */
  ending?: 'end' | 'stall' | 'reset';
  /** Waited for before anything is answered. */
  after?: Promise<unknown>;
}
export type VendorStep = VendorAnswer | ((request: VendorRequest) => VendorAnswer);

export interface VendorRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: unknown;
  /** What is wrong with the body by the vendor's rules; null when it is right. */
  violation: string | null;
  /** Settles when the client has closed its side or the answer is complete. */
  closed: Promise<'finished' | 'cancelled'>;
  /** True once the client went away before the answer was complete. */
  cancelled: boolean;
}

/**
 * A local stand-in for both vendors: answers requests in the order of a script, records them, and refuses with 400 what
 * the vendor itself would refuse. A request without a step gets 500.
 */
export class VendorServer {
  readonly requests: VendorRequest[] = [];
  private readonly steps: VendorStep[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly waiting: { count: number; resolve: () => void }[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<VendorServer> {
    const server = createServer();
    const vendor = new VendorServer(server);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on(
        'end',
        () =>
          void vendor.answer(request.method ?? '', request.url ?? '', request.headers, Buffer.concat(chunks).toString('utf8'), response),
      );
    });
    server.on('connection', (socket) => {
      vendor.sockets.add(socket);
      socket.on('close', () => vendor.sockets.delete(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return vendor;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Number of connections that are open now. */
  get connections(): number {
    return this.sockets.size;
  }

  /** Adds answers to the script. */
  script(...steps: VendorStep[]): this {
    this.steps.push(...steps);
    return this;
  }

  /** Forgets the script and what was recorded. */
  reset(): void {
    this.steps.length = 0;
    this.requests.length = 0;
  }

  /** Settles when `count` requests have come. */
  async received(count: number): Promise<void> {
    if (this.requests.length >= count) return;
    await new Promise<void>((resolve) => this.waiting.push({ count, resolve }));
  }

  /** The body of the newest request. */
  get lastBody(): { [key: string]: unknown } {
    return this.requests.at(-1)?.body as { [key: string]: unknown };
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private async answer(method: string, path: string, headers: IncomingHttpHeaders, text: string, response: ServerResponse): Promise<void> {
    const body: unknown = text === '' ? null : JSON.parse(text);
    const violation = method === 'POST' ? bodyViolation(path, body) : null;
    const request: VendorRequest = {
      method,
      path,
      headers,
      body,
      violation,
      cancelled: false,
      closed: closing(response, () => (request.cancelled = true)),
    };
    this.requests.push(request);
    for (const waiter of this.waiting) if (this.requests.length >= waiter.count) waiter.resolve();
    if (violation !== null) return reply(response, 400, {}, refusal(path, violation));
    const step = this.steps.shift();
    if (step === undefined) return reply(response, 500, {}, refusal(path, 'the script has no answer for this request'));
    const answer = typeof step === 'function' ? step(request) : step;
    await answer.after;
    if (answer.events === undefined && answer.ending === undefined)
      return reply(response, answer.status ?? 200, answer.headers ?? {}, answer.body ?? {});
    await stream(response, answer);
  }
}

function closing(response: ServerResponse, cancelled: () => void): Promise<'finished' | 'cancelled'> {
  return new Promise((resolve) => {
    response.once('close', () => {
      if (response.writableFinished) return resolve('finished');
      cancelled();
      resolve('cancelled');
    });
  });
}

const refusal = (path: string, message: string): unknown =>
  path.endsWith('/messages')
    ? { type: 'error', error: { type: 'invalid_request_error', message } }
    : { error: { message, type: 'invalid_request_error', param: null, code: null } };

function reply(response: ServerResponse, status: number, headers: { [name: string]: string }, body: unknown): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/html' : 'application/json', ...headers });
  response.end(text);
}

/** The bytes of a stream of events. */
export function sseBytes(events: readonly SseEvent[], newline = '\n'): Buffer {
  const lines = events.map(({ event, data, comment }) =>
    [
      ...(comment === undefined ? [] : [`: ${comment}`]),
      ...(event === undefined ? [] : [`event: ${event}`]),
      ...(data === undefined ? [] : [`data: ${typeof data === 'string' ? data : JSON.stringify(data)}`]),
      '',
    ].join(newline),
  );
  return Buffer.from(lines.map((line) => line + newline).join(''), 'utf8');
}

async function stream(response: ServerResponse, answer: VendorAnswer): Promise<void> {
  response.writeHead(answer.status ?? 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...answer.headers,
  });
  response.flushHeaders();
  response.socket?.setNoDelay(true);
  const bytes = sseBytes(answer.events ?? [], answer.newline);
  const delivery = answer.delivery ?? 'whole';
  const size = delivery === 'whole' ? bytes.length : delivery === 'bytes' ? 1 : delivery.split;
  for (let at = 0; at < bytes.length; at += size) {
    if (response.destroyed) return;
    response.write(bytes.subarray(at, at + size));
    if (delivery !== 'whole') await nextTick();
  }
  switch (answer.ending ?? 'end') {
    case 'end':
      response.end();
      break;
    case 'reset':
      response.socket?.resetAndDestroy();
      break;
    case 'stall':
      break;
  }
}
