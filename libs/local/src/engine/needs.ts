import type { Bus, SdkBus } from '#libs/iii';
import { hasTriggerType, registered } from './directory.js';
import { type Patience, waitUntil } from './reach.js';
import { type EngineSibling, SIBLINGS } from './siblings.js';
import type { StoreKind } from './turn-store.js';

/** Trigger types of the engine's own workers that nothing stands in for. */
const TRIGGER_TYPES = ['configuration', 'cron'] as const;
const FUNCTIONS = ['configuration::register', 'configuration::get'];
const STATE = ['state::get', 'state::set', 'state::delete', 'state::list'];

/**
 * Waits until everything is there that a turn needs of other workers, whatever the order in which they start; `ours` are the
 * siblings that this process stands in for, `store` where it keeps the records of turns.
 */
export async function waitForNeeds(bus: SdkBus, ours: ReadonlySet<EngineSibling>, store: StoreKind, patience: Patience): Promise<void> {
  const own = store === 'engine' && !ours.has('state') ? [...FUNCTIONS, ...STATE] : FUNCTIONS;
  const siblings = (Object.keys(SIBLINGS) as EngineSibling[]).filter((name) => !ours.has(name));
  await waitUntil(async () => {
    const wanted = siblings.flatMap((name) => SIBLINGS[name].needed.map((id) => ({ id, name })));
    const found = await registered(bus, [...own, ...wanted.map(({ id }) => id)]);
    const lacking = own.filter((id) => !found.has(id));
    const absent = wanted.filter(({ id }) => !found.has(id));
    const hints = [...new Set(absent.map(({ name }) => name))];
    const missing = [...lacking, ...absent.map(({ id }) => id), ...(await missingTypes(bus))];
    if (missing.length === 0) return null;
    const hint = hints.length === 0 ? '' : `; this worker can stand in: HARNESS_SIBLINGS=${hints.join(',')}`;
    return `${missing.join(', ')}${hint}`;
  }, patience);
}

async function missingTypes(bus: Bus): Promise<string[]> {
  const missing: string[] = [];
  for (const id of TRIGGER_TYPES) if (!(await hasTriggerType(bus, id))) missing.push(`the trigger type ${id}`);
  return missing;
}
