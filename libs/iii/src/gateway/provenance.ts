import type { JsonValue } from '#libs/contracts';
import type { TraceContext } from '../bus.js';
import { agentOf } from '../provenance.js';

/** Baggage entry that carries `metadata.agent` through a worker whose handler does not pass its metadata on. */
const ENTRY = 'harness.agent';

/** The baggage of a call to a worker: what came with it, and for whom the call is made. */
export function baggageFor(trace: TraceContext | undefined, metadata: JsonValue | undefined): string | undefined {
  const agent = agentOf(metadata);
  const others = (trace?.baggage ?? '').split(',').filter((entry) => entry.trim() !== '' && keyOf(entry) !== ENTRY);
  const all = agent === undefined ? others : [...others, `${ENTRY}=${encodeURIComponent(JSON.stringify(agent))}`];
  return all.length === 0 ? undefined : all.join(',');
}

/**
 * The metadata of a call from a worker: its own, and the provenance that its baggage carries. A worker whose tracing is on
 * sends the baggage of the call it is in, so a call that it makes for a model stays one.
 */
export function withProvenance(metadata: JsonValue | undefined, baggage: string | undefined): JsonValue | undefined {
  const entry = baggage?.split(',').find((each) => keyOf(each) === ENTRY);
  if (entry === undefined || agentOf(metadata) !== undefined) return metadata;
  const agent = parsed(entry.slice(entry.indexOf('=') + 1).split(';')[0] ?? '');
  if (agent === undefined) return metadata;
  const own = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata) ? metadata : {};
  return { ...own, agent };
}

const keyOf = (entry: string): string => entry.slice(0, Math.max(entry.indexOf('='), 0)).trim();

function parsed(value: string): JsonValue | undefined {
  try {
    return JSON.parse(decodeURIComponent(value.trim())) as JsonValue;
  } catch {
    return undefined; // not ours
  }
}
