import type { JsonValue } from '#libs/contracts';
import { BusError } from '#libs/iii';

/** How a queue works, as `queue::define` takes it. */
export interface QueueDefinition {
  /** `fifo`: jobs of one group run one after the other, in order. `standard`: each for itself. */
  type: 'standard' | 'fifo';
  /** Field of the payload that names a job's group; for `fifo`. */
  message_group_field?: string | null;
  /** Jobs that run side by side, in one process or in all that share the queue by Redis. */
  concurrency?: number | null;
  /** Tries after the first one; then the job is dead. */
  max_retries?: number | null;
  /** Pause before the first retry, in ms; doubles with each. */
  backoff_ms?: number | null;
  /** How long one try may take, in ms. */
  timeout_ms?: number | null;
  poll_interval_ms?: number | null;
  redeliver_on_engine_restart?: boolean | null;
}

/** A definition with its defaults filled in. */
export interface QueueSettings {
  groupField: string | null;
  concurrency: number;
  maxRetries: number;
  backoffMs: number;
  timeoutMs: number;
}

/** The queue that is there without being defined, and its definition until somebody gives another. */
export const DEFAULT_QUEUE = 'default';
export const DEFAULT_DEFINITION: QueueDefinition = { type: 'standard' };

/** What a definition comes to. */
export const settingsOf = (definition: QueueDefinition): QueueSettings => ({
  groupField: definition.type === 'fifo' ? (definition.message_group_field ?? null) : null,
  concurrency: Math.max(definition.concurrency ?? 10, 1),
  maxRetries: definition.max_retries ?? 3,
  backoffMs: definition.backoff_ms ?? 1_000,
  timeoutMs: definition.timeout_ms ?? 1_800_000,
});

/** Longest pause between two tries, in ms. */
const MAX_BACKOFF_MS = 24 * 60 * 60 * 1_000;

/** The pause after the n-th failed try, in ms. */
export const backoffOf = (settings: QueueSettings, attempts: number): number =>
  Math.min(settings.backoffMs * 2 ** (attempts - 1), MAX_BACKOFF_MS);

/** The group of a job; null in a queue without groups. Throws `enqueue_error` when the payload names none. */
export function groupOf(settings: QueueSettings, queue: string, payload: JsonValue, functionId: string): string | null {
  const field = settings.groupField;
  if (field === null) return null;
  const value = typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? payload[field] : undefined;
  if (typeof value === 'string' && value !== '') return value;
  if (typeof value === 'number') return String(value);
  throw new BusError(
    'enqueue_error',
    `queue ${queue} groups its jobs by ${field}: the payload must have that field, as a text or number`,
    functionId,
  );
}
