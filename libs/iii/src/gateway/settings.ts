import { HarnessError } from '#libs/contracts';
import type { Admission } from './admission.js';

/** The port where iii workers look for their engine. */
export const DEFAULT_PORT = 49_134;

/** What an operator asks of a gateway. */
export interface GatewaySettings extends Admission {
  host: string;
  port: number;
  /** True when a free port will do where this one is busy, since nobody asked for it by name. */
  any_port: boolean;
}

const invalid = (name: string, what: string): HarnessError => new HarnessError('gateway/invalid_setting', `${name} ${what}`);
const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

/**
 * Reads the settings of the gateway from the environment: `HARNESS_GATEWAY_PORT`, `_HOST`, `_TOKEN` and `_ORIGINS`.
 * Throws `gateway/invalid_setting`, also for a host that others can reach without a token.
 */
export function gatewaySettings(env: NodeJS.ProcessEnv): GatewaySettings {
  const value = (name: string): string | null => env[name]?.trim() || null;
  const given = value('HARNESS_GATEWAY_PORT');
  const port = given === null ? DEFAULT_PORT : Number(given);
  if (given !== null && (!/^\d+$/.test(given) || port > 65_535)) {
    throw invalid('HARNESS_GATEWAY_PORT', `must be a number from 0 to 65535 (0: any free port), not ${JSON.stringify(given)}`);
  }
  const host = value('HARNESS_GATEWAY_HOST') ?? '127.0.0.1';
  const token = value('HARNESS_GATEWAY_TOKEN');
  if (!isLoopback(host) && token === null) {
    throw invalid('HARNESS_GATEWAY_HOST', `is ${host}, which other machines can reach: that needs HARNESS_GATEWAY_TOKEN as well`);
  }
  const origins = (value('HARNESS_GATEWAY_ORIGINS') ?? '')
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  return { host, port, any_port: given === null, token, origins };
}
