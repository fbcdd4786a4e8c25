import type { IncomingMessage } from 'node:http';
import { isSameSecret } from '../secret.js';

/** Who may connect. */
export interface Admission {
  /** What a worker must prove to know; null when everybody who reaches the port may connect. */
  token: string | null;
  /** Origins of web pages that may connect; any other page is refused. */
  origins: readonly string[];
}

/** Why a request is refused, as the status of the HTTP answer. */
export interface Refusal {
  status: number;
  reason: string;
}

/**
 * Checks a request before its connection is made. A browser says which page it asks for, a program does not: so a page
 * is refused unless it is listed. The token comes as `Authorization: Bearer <token>`, or as the password of the URL.
 */
export function refusalOf({ headers }: IncomingMessage, { token, origins }: Admission): Refusal | null {
  const { origin, authorization } = headers;
  if (origin !== undefined && !origins.includes(origin)) return { status: 403, reason: 'web pages may not connect' };
  if (token !== null && !isSameSecret(token, givenToken(authorization))) return { status: 401, reason: 'the token is missing or wrong' };
  return null;
}

function givenToken(authorization: string | undefined): string {
  const [, scheme = '', value = ''] = /^(\S+) +(.*)$/.exec(authorization ?? '') ?? [];
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return value;
    case 'basic': {
      const pair = Buffer.from(value, 'base64').toString('utf8');
      return pair.slice(pair.indexOf(':') + 1);
    }
    default:
      return '';
  }
}
