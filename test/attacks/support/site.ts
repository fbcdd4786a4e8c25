import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startApp, type TestApp } from '../../../libs/local/src/confine/test/app.js';
import { type Resolve, WEB_RESOLVE } from '../../../libs/local/src/web/connection.js';
import { WebModule } from '../../../libs/local/src/web/index.js';

/** What `web::fetch` answers, with every field that a test may ask for. */
export interface Answer {
  ok: boolean;
  error?: string;
  message?: string;
  status?: number;
  body?: string;
  json?: unknown;
  parse_error?: string;
  bytes_truncated?: boolean;
  transform_error?: string;
  links?: { internal: unknown[]; external: unknown[] };
}

/** `web::fetch` against a server on the loopback address, with names that resolve as a test says. */
export class Site {
  /** Requests that arrived, as `GET /path`. */
  hits: string[] = [];
  /** Addresses of names, in the order in which they are given out. */
  readonly names: { [name: string]: string[][] } = {};
  respond: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end('ok');
  app!: TestApp;
  port = 0;
  private readonly server: Server = createServer((request, response) => {
    this.hits.push(`${request.method} ${request.url}`);
    this.respond(request, response);
  });

  static async open(): Promise<Site> {
    const site = new Site();
    const resolve: Resolve = (name, _options, done) => {
      const answers = site.names[name] ?? [];
      const addresses = (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
      done(
        addresses.length === 0 ? new Error(`ENOTFOUND ${name}`) : null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    };
    site.app = await startApp(WebModule, { providers: [{ provide: WEB_RESOLVE, useValue: resolve }], tokens: [WEB_RESOLVE] });
    site.server.listen(0, '127.0.0.1');
    await once(site.server, 'listening');
    site.port = (site.server.address() as AddressInfo).port;
    return site;
  }

  get base(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Back to a server that answers `ok`, and private addresses that are open or not. */
  reset(allowPrivate: boolean): void {
    this.hits = [];
    this.respond = (_request, response) => response.end('ok');
    this.app.values.allow_private_addresses = allowPrivate;
  }

  get(payload: object): Promise<Answer> {
    return this.app.call<Answer>('web::fetch', payload);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await this.app.close();
  }
}
