import type { JsonObject, JsonValue } from '#libs/contracts';
import { type Bus, BusError, TriggerBindings } from '#libs/iii';

/** The part of the engine's configuration worker that a harness uses: entries in memory, checked by nobody. */
export function startConfigurationWorker(bus: Bus): void {
  const values = new Map<string, JsonValue>();
  const changes = new TriggerBindings<{ configuration_id?: string }>({ id: 'configuration', description: 'An entry has changed.' });
  changes.publish(bus);
  const on = (name: string, handler: (payload: JsonObject) => Promise<JsonValue>): void => {
    bus.registerFunction({ id: `configuration::${name}` }, (payload) => handler(payload as JsonObject));
  };
  const tell = (id: string): Promise<void> =>
    changes.call(
      bus,
      { type: 'configuration', event_type: 'configuration:updated', id },
      ({ configuration_id }) => configuration_id === id,
    );
  const idOf = (payload: JsonObject): string => String(payload['id']);
  on('register', async (payload) => {
    if (payload['initial_value'] !== undefined) values.set(idOf(payload), payload['initial_value']);
    await tell(idOf(payload));
    return { ...payload, value: values.get(idOf(payload)) ?? null };
  });
  on('get', (payload) => {
    const value = values.get(idOf(payload));
    if (value === undefined) throw new BusError('NOT_FOUND', `configuration '${idOf(payload)}' not found`);
    return Promise.resolve({ id: idOf(payload), value });
  });
  on('set', async (payload) => {
    values.set(idOf(payload), payload['value'] ?? null);
    await tell(idOf(payload));
    return { new_value: payload['value'] ?? null };
  });
}
