import type { JsonValue } from '#libs/contracts';
import type { TriggerRequest } from './bus.js';

/** A call made inside another one: on whose behalf that was made (`metadata.agent`) holds for it, too. */
export function inherit(request: TriggerRequest, outer: JsonValue | undefined): TriggerRequest {
  const agent = agentOf(outer);
  if (agent === undefined || agentOf(request.metadata) !== undefined) return request;
  return { ...request, metadata: { ...asObject(request.metadata), agent } };
}

const asObject = (value: JsonValue | undefined): { [key: string]: JsonValue } =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** For whom a call is made, by its metadata; undefined for nobody's. */
export const agentOf = (metadata: JsonValue | undefined): JsonValue | undefined => asObject(metadata)['agent'];
