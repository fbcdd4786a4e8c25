import { HarnessError } from '#libs/contracts';

/** Where health and metrics are served by default. */
const DEFAULT_HTTP_PORT = 3117;

/** Where health and metrics are served. */
export interface ServiceSettings {
  host: string;
  /** 0: a free one. */
  port: number;
  /** True when a free port will do where this one is busy, since nobody asked for it by name. */
  any_port: boolean;
}

/**
 * Reads `HARNESS_HTTP_PORT` and `HARNESS_HTTP_HOST`; null when the port is `off`. Throws `service/invalid_setting`. There is no
 * password: what is served tells how the worker does, never what is said in its sessions.
 */
export function serviceSettings(env: NodeJS.ProcessEnv): ServiceSettings | null {
  const given = env['HARNESS_HTTP_PORT']?.trim() || null;
  if (given === 'off') return null;
  const port = given === null ? DEFAULT_HTTP_PORT : Number(given);
  if (given !== null && (!/^\d+$/.test(given) || port > 65_535)) {
    const told = JSON.stringify(given);
    throw new HarnessError(
      'service/invalid_setting',
      `HARNESS_HTTP_PORT must be a number from 0 to 65535 (0: any free port) or off, not ${told}`,
    );
  }
  return { host: env['HARNESS_HTTP_HOST']?.trim() || '127.0.0.1', port, any_port: given === null };
}
