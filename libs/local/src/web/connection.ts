import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { isIP } from 'node:net';
import type { Agent } from 'undici';
import { isAllowedAddress } from './address.js';
import { WebError } from './errors.js';

/** Finds the addresses of a name; the shape of `dns.lookup` with `all`. */
export type Resolve = (hostname: string, options: { all: true }, done: (error: Error | null, addresses: LookupAddress[]) => void) => void;
export const systemResolve: Resolve = (hostname, options, done) =>
  systemLookup(hostname, options, (error, addresses) => done(error, addresses));

/** Injection token that replaces how `web::fetch` resolves names. */
export const WEB_RESOLVE = Symbol('harness:web-resolve');

type LookupDone = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/** @throws WebError `blocked_host` when the host of a URL is an address that may not be reached. */
export function assertHost(url: URL, allowPrivate: boolean): void {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isAllowedAddress(host, allowPrivate)) throw blocked(host, host);
}

/**
 * An agent that connects only to checked addresses. The check is made inside the connection's own look-up, and the
 * addresses that passed are the ones dialled: a name that answers otherwise a moment later changes nothing.
 */
export function checkedAgent(AgentClass: typeof Agent, allowPrivate: boolean, resolve: Resolve): Agent {
  const lookup = (hostname: string, options: LookupOptions, done: LookupDone): void => {
    resolve(hostname, { all: true }, (error, addresses) => {
      if (error !== null) return done(error, []);
      const refused = addresses.find(({ address }) => !isAllowedAddress(address, allowPrivate));
      if (refused !== undefined) return done(blocked(hostname, refused.address), []);
      const [first] = addresses;
      if (first === undefined) return done(new Error(`no address for ${hostname}`), []);
      if (options.all === true) return done(null, addresses);
      done(null, first.address, first.family);
    });
  };
  return new AgentClass({ connect: { lookup: lookup as never }, pipelining: 1, maxHeaderSize: 32_768 });
}

const blocked = (host: string, address: string): WebError =>
  new WebError(
    'blocked_host',
    host === address ? `${host} is not a public address` : `${host} resolves to ${address}, which is not a public address`,
  );
