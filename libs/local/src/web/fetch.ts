import type { Response } from 'undici';
import type { ConfineValues } from '../confine/index.js';
import { assertHost, checkedAgent, type Resolve } from './connection.js';
import { deepMessage, findWebError, WebError } from './errors.js';

export interface HopRequest {
  url: URL;
  method: string;
  headers: Headers;
  body: string | null;
}
export interface Fetched<T> {
  value: T;
  /** URLs that redirected, in order. */
  chain: string[];
}

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** What a redirect to another site takes along; any other header may hold a key for the first one. */
const IMPERSONAL = new Set(['accept', 'accept-encoding', 'accept-language', 'content-type', 'range', 'user-agent']);

/**
 * Sends a request and follows redirects by hand: every hop's address is checked under the limits then in force, and what
 * belongs to one site is not carried to another. `use` gets the last response and must read its body.
 */
export async function fetchChecked<T>(
  first: HopRequest,
  options: { follow: boolean; values: () => ConfineValues; resolve: Resolve; signal: AbortSignal },
  use: (response: Response, url: URL) => Promise<T>,
): Promise<Fetched<T>> {
  const { Agent, fetch } = await import('undici'); // at the first request: it takes a while to load
  const chain: string[] = [];
  for (let hop = first; ; ) {
    const allowPrivate = options.values().allow_private_addresses;
    assertHost(hop.url, allowPrivate);
    const agent = checkedAgent(Agent, allowPrivate, options.resolve);
    try {
      const response = await fetch(hop.url, {
        method: hop.method,
        headers: [...hop.headers] as [string, string][],
        body: hop.body,
        redirect: 'manual',
        signal: options.signal,
        dispatcher: agent,
      });
      const location = REDIRECTS.has(response.status) && options.follow ? response.headers.get('location') : null;
      if (location === null) return { value: await use(response, hop.url), chain };
      await response.body?.cancel();
      if (chain.push(hop.url.href) > MAX_REDIRECTS)
        throw new WebError('too_many_redirects', `more than ${MAX_REDIRECTS} redirects, the last to ${location.slice(0, 500)}`);
      hop = nextHop(hop, location, response.status);
    } catch (error) {
      throw asWebError(error, hop.url);
    } finally {
      await agent.destroy();
    }
  }
}

function nextHop(hop: HopRequest, location: string, status: number): HopRequest {
  if (!URL.canParse(location, hop.url.href))
    throw new WebError('transport_error', `the redirect to ${location.slice(0, 500)} is not a URL`);
  const url = new URL(location, hop.url);
  assertUrl(url);
  const headers = new Headers(hop.headers);
  if (url.origin !== hop.url.origin) for (const name of [...headers.keys()]) if (!IMPERSONAL.has(name)) headers.delete(name);
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : (status === 301 || status === 302) && hop.method === 'POST';
  if (!becomesGet) return { ...hop, url, headers };
  for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) headers.delete(name);
  return { url, method: 'GET', headers, body: null };
}

/** @throws WebError `invalid_url` unless the URL is one that may be fetched. */
export function assertUrl(url: URL): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new WebError('invalid_url', `${url.protocol} is not http: or https:`);
  if (url.username !== '' || url.password !== '')
    throw new WebError('invalid_url', 'a URL may not hold a name or password; use an authorization header');
}

function asWebError(error: unknown, url: URL): WebError {
  const found = findWebError(error);
  if (found !== null) return found;
  return new WebError('transport_error', `${url.host}: ${deepMessage(error)}`, { cause: error });
}
