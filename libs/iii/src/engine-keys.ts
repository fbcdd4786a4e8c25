/** Drops what an engine adds to a payload by itself. */
export function withoutEngineKeys(payload: unknown): unknown {
  if (typeof payload !== 'object' || payload === null || !('_caller_worker_id' in payload)) return payload;
  const { _caller_worker_id: _, ...rest } = payload;
  return rest;
}
