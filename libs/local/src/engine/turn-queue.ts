import { errorMessage, HarnessError, type JsonObject } from '#libs/contracts';
import type { Bus } from '#libs/iii';
import { registered } from './directory.js';
import { type Patience, waitUntil } from './reach.js';

/** The queue of turn steps on an engine. */
export const TURN_QUEUE = 'harness-turn';

/** How long a queue may take to be there, in ms. */
const READY_MS = 5_000;
/** The entry of the queue that is built into some engines. */
const BUILT_IN = 'iii-queue';
/** A step of no session: whoever gets it skips it. */
const PROBE = { session_id: 'harness-queue-probe', turn_id: 't_none', step: 0 };

/**
 * Sees to the FIFO queue of steps on the engine, by `queue::define` or by the configuration of the built-in queue, and tries it
 * with a step of no session. Throws `harness/no_queue`, with the reason, when the engine takes no step.
 */
export async function ensureTurnQueue(bus: Bus, concurrency: number, patience: Patience): Promise<void> {
  const config = { type: 'fifo', message_group_field: 'session_id', concurrency, max_retries: 3, backoff_ms: 1000, poll_interval_ms: 100 };
  const until = Date.now() + READY_MS;
  await waitUntil(async () => {
    try {
      await define(bus, config);
      await bus.trigger({ function_id: 'harness::turn', payload: PROBE, action: { type: 'enqueue', queue: TURN_QUEUE } });
      return null;
    } catch (error) {
      if (Date.now() >= until) throw unusable(error);
      return `the queue ${TURN_QUEUE}`;
    }
  }, patience);
}

const unusable = (error: unknown): HarnessError =>
  new HarnessError(
    'harness/no_queue',
    `the engine takes no steps into the queue ${TURN_QUEUE} (${errorMessage(error)}). Add a queue worker to the engine, or have this worker stand ` +
      'in for it: HARNESS_SIBLINGS=queue',
    { cause: error },
  );

async function define(bus: Bus, config: JsonObject): Promise<void> {
  if ((await registered(bus, ['queue::define'])).size > 0) {
    await bus.trigger({ function_id: 'queue::define', payload: { queue: TURN_QUEUE, config } });
    return;
  }
  const { value } = await bus.trigger<{ value?: JsonObject }>({ function_id: 'configuration::get', payload: { id: BUILT_IN, raw: true } });
  const queues = (value?.['queue_configs'] ?? {}) as JsonObject;
  if (queues[TURN_QUEUE] !== undefined) return;
  const changed = { ...value, queue_configs: { ...queues, [TURN_QUEUE]: config } };
  await bus.trigger({ function_id: 'configuration::set', payload: { id: BUILT_IN, value: changed } });
}
