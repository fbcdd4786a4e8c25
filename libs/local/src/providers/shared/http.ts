import type { Dispatcher } from 'undici';

/** A `fetch` as vendors' SDKs take it. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Proxy settings, as programs read them from the environment. */
interface ProxySettings {
  http?: string;
  https?: string;
  none?: string;
}

function settings(env: NodeJS.ProcessEnv): ProxySettings {
  const read = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  return { http: read('HTTP_PROXY'), https: read('HTTPS_PROXY'), none: read('NO_PROXY') };
}

/** True for an address of this machine, which never goes through a proxy. */
export function isLoopback(url: URL): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Says which proxy setting was in force for a URL, without its user and password. */
export function proxyNote(target: string, env: NodeJS.ProcessEnv = process.env): string {
  const url = URL.canParse(target) ? new URL(target) : undefined;
  if (url !== undefined && isLoopback(url)) return 'a loopback address, so no proxy is used';
  const { http, https, none } = settings(env);
  const [name, value] = url?.protocol === 'https:' && https !== undefined ? ['HTTPS_PROXY', https] : ['HTTP_PROXY', http];
  if (value === undefined) return 'no proxy is set';
  return `proxy setting: ${name}=${withoutUser(value)}${none === undefined ? '' : `, NO_PROXY=${none}`}`;
}

const withoutUser = (proxy: string): string => proxy.replace(/\/\/[^/@]*@/, '//');

let pool: { key: string; direct: Dispatcher; proxied: Dispatcher } | undefined;

/**
 * A `fetch` that obeys HTTP_PROXY, HTTPS_PROXY and NO_PROXY (Node's own does not). It sets no time limits: those are the
 * router's. It is loaded when the first request is made.
 */
export const vendorFetch: Fetch = async (input, init) => {
  const { Agent, EnvHttpProxyAgent, fetch } = await import('undici');
  const { http, https, none } = settings(process.env);
  const key = JSON.stringify([http, https, none]);
  if (pool?.key !== key) {
    // Plain HTTP goes to a proxy as such: most proxies open tunnels to port 443 only.
    const unlimited = { headersTimeout: 0, bodyTimeout: 0 };
    const direct = new Agent(unlimited);
    const proxied =
      http === undefined && https === undefined
        ? direct
        : new EnvHttpProxyAgent({ ...unlimited, proxyTunnel: false, httpProxy: http, httpsProxy: https, noProxy: none });
    pool = { key, direct, proxied };
  }
  const url = new URL(typeof input === 'string' || input instanceof URL ? input : input.url);
  const dispatcher = isLoopback(url) ? pool.direct : pool.proxied;
  const response = await fetch(url, { ...(init as object), dispatcher });
  return response as unknown as Response;
};

/** A `fetch` that also keeps the words of an error body that is not of the vendor's form, e.g. `{"detail": "..."}`. */
export const keepingErrorBodies =
  (fetch: Fetch): Fetch =>
  async (input, init) => {
    const response = await fetch(input, init);
    if (response.ok) return response;
    const text = await response.text();
    const { status, headers } = response;
    return new Response(hasErrorField(text) ? text : JSON.stringify({ error: { message: text.slice(0, 1_500) || 'no explanation' } }), {
      status,
      headers: Object.fromEntries(
        [...headers].filter(([name]) => !['content-length', 'content-encoding', 'transfer-encoding'].includes(name)),
      ),
    });
  };

function hasErrorField(text: string): boolean {
  try {
    const body = JSON.parse(text) as unknown;
    return typeof body === 'object' && body !== null && 'error' in body;
  } catch {
    return false;
  }
}
