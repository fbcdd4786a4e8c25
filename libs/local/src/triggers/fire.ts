import type { JsonValue } from '#libs/contracts';
import type { Bus, TriggerRegistration } from '#libs/iii';

/** How long a function that is bound to a trigger, or its condition, may take, in ms. */
const TIMEOUT_MS = 300_000;

/** Calls the condition of a binding with the event: only an explicit `false` says no. */
async function holds(bus: Bus, condition: string | null | undefined, payload: JsonValue): Promise<boolean> {
  if (condition === null || condition === undefined) return true;
  return (await bus.trigger({ function_id: condition, payload, timeoutMs: TIMEOUT_MS })) !== false;
}

/** Calls a bound function with an event, unless its condition says no. Rejects when either of them fails. */
export async function fire(bus: Bus, registration: TriggerRegistration, payload: JsonValue): Promise<void> {
  const { function_id, metadata, config } = registration;
  const condition = (config as { condition_function_id?: string | null } | null)?.condition_function_id;
  if (!(await holds(bus, condition, payload))) return;
  await bus.trigger({ function_id, payload, timeoutMs: TIMEOUT_MS, ...(metadata === undefined ? {} : { metadata }) });
}
