import { connect } from 'node:net';
import { type Check, fail, ok, warn } from './check.js';

/** How long a connection may take, in ms. */
const TIMEOUT_MS = 2000;
const PORTS: { readonly [protocol: string]: number } = {
  'redis:': 6379,
  'rediss:': 6380,
  'ws:': 80,
  'wss:': 443,
  'http:': 80,
  'https:': 443,
};

function tryConnect(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: TIMEOUT_MS });
    const done = (fault: string | null): void => {
      socket.destroy();
      resolve(fault);
    };
    socket.once('connect', () => done(null));
    socket.once('timeout', () => done('it does not answer'));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      done(error.code === 'ECONNREFUSED' ? 'nothing listens there' : error.code === 'ENOTFOUND' ? 'there is no such host' : error.message),
    );
  });
}

/** Can the server that an environment variable names be reached by TCP? Not set is fine: nothing needs it. */
export async function checkReach(name: string, variable: string, env: NodeJS.ProcessEnv, start: string): Promise<Check> {
  const value = env[variable] ?? '';
  if (value === '') return ok(name, `${variable} is not set; not needed`);
  let url: URL;
  try {
    url = new URL(value);
  } catch {
    return fail(
      name,
      `${variable} is not a URL`,
      `Set it to something like ${name === 'redis' ? 'redis://127.0.0.1:6379' : 'ws://127.0.0.1:49134'}, or unset it.`,
    );
  }
  const port = url.port === '' ? PORTS[url.protocol] : Number(url.port);
  if (port === undefined) return fail(name, `${variable} has the unknown protocol ${url.protocol}`, 'Correct or unset it.');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const fault = await tryConnect(host, port);
  if (fault !== null) return fail(name, `${host}:${port} (${variable}): ${fault}`, start);
  return ok(name, `${host}:${port} answers`);
}

/** Which keys are there? Never their values. */
export function checkKeys(env: NodeJS.ProcessEnv): Check {
  const known = [
    ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'],
    ['OPENAI_API_KEY', 'OPENAI_BASE_URL'],
  ] as const;
  const texts = known.map(([key, base]) => {
    const at = env[base] ?? '';
    return `${key} is ${(env[key] ?? '') === '' ? 'not set' : 'set'}${at === '' ? '' : `, ${base} is ${hostOf(at)}`}`;
  });
  const any = known.some(([key]) => (env[key] ?? '') !== '');
  return any
    ? ok('keys', texts.join('; '))
    : warn('keys', texts.join('; '), 'Without a key only the offline demo provider answers. Set one of them to use a model.');
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return 'not a URL';
  }
}
