import type { LiveFeed } from '#libs/turn';
import type { Service } from './service.js';
import type { ServiceSettings } from './settings.js';
import type { WorkerVitals } from './vitals.js';

export type { Service } from './service.js';
export { type ServiceSettings, serviceSettings } from './settings.js';
export type { WorkerVitals } from './vitals.js';

/** Serves health and metrics of a worker; what it takes is loaded only now. Throws `service/port_unavailable`. */
export async function startService(vitals: WorkerVitals, feed: LiveFeed, settings: ServiceSettings): Promise<Service> {
  const { listen } = await import('./service.js');
  return await listen(vitals, feed, settings);
}
