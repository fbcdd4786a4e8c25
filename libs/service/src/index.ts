import type { Vitals } from '#libs/local';
import type { LiveFeed } from '#libs/turn';
import type { Service } from './service.js';
import type { ServiceSettings } from './settings.js';

export type { Service } from './service.js';
export { type ServiceSettings, serviceSettings } from './settings.js';

/** Serves health and metrics of a worker; what it takes is loaded only now. Throws `service/port_unavailable`. */
export async function startService(vitals: Vitals, feed: LiveFeed, settings: ServiceSettings): Promise<Service> {
  const { listen } = await import('./service.js');
  return await listen(vitals, feed, settings);
}
