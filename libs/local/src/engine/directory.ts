import { errorCode } from '#libs/contracts';
import type { Bus } from '#libs/iii';

/** How long the engine may take to answer what it has, in ms. */
const ANSWER_MS = 5_000;
/** Functions that one question may be about. */
const MOST = 32;

/** A function that somebody has registered. */
export interface Registered {
  function_id: string;
  worker_name: string;
  request_schema?: unknown;
}

/** Which of these functions are there, by id. Throws as `Bus.trigger`. */
export async function registered(bus: Bus, ids: readonly string[]): Promise<Map<string, Registered>> {
  const found = new Map<string, Registered>();
  for (let from = 0; from < ids.length; from += MOST) {
    const { functions } = await bus.trigger<{ functions: (Registered & { error?: string })[] }>({
      function_id: 'engine::functions::info',
      payload: { function_ids: ids.slice(from, from + MOST) },
      timeoutMs: ANSWER_MS,
    });
    for (const info of functions) if (info.error === undefined) found.set(info.function_id, info);
  }
  return found;
}

/** True when there is a trigger type of this id. */
export async function hasTriggerType(bus: Bus, id: string): Promise<boolean> {
  try {
    await bus.trigger({ function_id: 'engine::triggers::info', payload: { id }, timeoutMs: ANSWER_MS });
    return true;
  } catch (error) {
    if (errorCode(error) === 'NOT_FOUND') return false;
    throw error;
  }
}
